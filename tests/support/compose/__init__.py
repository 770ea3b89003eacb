"""A Docker engine, the images of docker-compose.yaml, and a project made of them."""
