"""Changes to destination topics: creation, added partitions, configurations, ACLs and deletion."""
