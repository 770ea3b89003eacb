"""The local store on LMDB: one environment for each version of a read model."""
