"""What other programs print, as values: topology matrices, NCCL's XML, schedulers' and fabrics' lists.

Text in, values out, with every fault at its line. It judges nothing: what a value means for a cluster is said
in `cluster.importing`. Input comes from strangers, so every reader bounds what it builds.
Read first: `topology_matrix.parse_topology_matrix`; the other modules have the same shape.
"""
