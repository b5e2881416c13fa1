"""What a run of kind "trees" is given: topologies and workloads, made up or from files."""
