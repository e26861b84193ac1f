"""The state topics of a link, all on the destination cluster: the plan, the offset map, reports and others."""
