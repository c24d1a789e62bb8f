# SPDX-License-Identifier: BSD-2-Clause
"""What the tests in Python share; each has it by

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

tap: points, the plan. lab: a folder, processes and what is undone at the end, however that comes. wait: until something is
so. stalls: how long the machine stood still. promise: what depends on the machine. shark: packets as tshark reads them.
network: namespaces and what joins them. pathline: the program, its daemon, its pages. pcap: captures. roce: frames, and
pathline collect, which takes them. cm: messages of RDMA-CM. servers: Alertmanager and the like. clickhouse: a server of it. tapping: `pathline tap`.
foreign: programs of traffic control of others. collectors: of IPFIX."""
