"""`make endurance`: what weeks and thousands of partitions cost a link, on real brokers."""
