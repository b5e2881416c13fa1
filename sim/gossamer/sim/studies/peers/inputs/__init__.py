"""What a run of peers is given: the scenario, its file, subscriptions and publications.

All of `gossamer.sim.studies.peers` imports from here. Begin with `scenario`, which `scenario_file`
reads. `workload` draws who wants what, `publications` says when and for whom, `changes` what
changes meanwhile, `overlays` what those of one's own lack; `own_workload` and `own_tables` read
the user's files, `taken_from` says which.
"""
