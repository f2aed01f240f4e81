"""A decision service: models behind HTTP, a log that is the truth, keys; `pip install 'solid-bandits[service]'`."""
