"""One partition on its way, split by owner: each part's attributes are assigned by its own methods alone.

The *cursor* is the fetching side's, the *send queue* the sending side's, the *position* recovery's. The report is
derived from them.
"""
