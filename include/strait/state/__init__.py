"""The state topics of a link: plan, map and reports, all on the destination cluster."""
