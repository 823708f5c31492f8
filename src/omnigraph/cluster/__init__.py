"""A cluster: one folder that declares graphs and schemas, one storage root that holds them."""
