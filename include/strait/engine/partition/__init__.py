"""One partition that is being copied, split by owner: the attributes of each part are assigned by its own methods
alone.

The *cursor* belongs to the fetching side, the *send queue* to the sending side, the *position* to recovery. The report
is derived from them.
"""
