"""What mutmut 3 needs of pytest 9: the name of a test under its old attribute."""

from _pytest.nodes import Node

if "_nodeid" not in vars(Node):
    Node._nodeid = property(lambda node: node.nodeid)
