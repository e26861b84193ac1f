"""What is to be done to the copies themselves: create, grow, set configurations, give rights, delete."""
