/* SPDX-License-Identifier: BSD-2-Clause */
/* The schema of a switch's file, and checks of single values. */
#include "dataplane/conf.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "dataplane/clock.h"
#include "dataplane/field.h"
#include "dataplane/own.h"
#include "dataplane/queues.h"
#include "record/packet.h"

static const char *const stages[] = { "ingress", "egress", NULL };

/* Names must have no blanks, which separate words of actions, and must suit metrics pages. */
static int check_name(const char *value, struct pl_diag *diag)
{
	if (value[0] != '\0' && strlen(value) <= PL_DP_NAME_MAX &&
		value[strspn(value,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] ==
			'\0')
		return 0;
	pl_diag_set(diag, "a name has 1 to %d letters, digits, '_', '-' or '.'", PL_DP_NAME_MAX);
	return -EINVAL;
}

static int check_mac(const char *value, struct pl_diag *diag)
{
	uint64_t mac;

	if (pl_dp_mac_parse(value, &mac) == 0 && (mac >> 40 & 1) == 0)
		return 0;
	pl_diag_set(diag, "\"%s\" is not a MAC address of one station, such as 02:00:00:00:00:01",
		value);
	return -EINVAL;
}

static int check_rate(const char *value, struct pl_diag *diag)
{
	double rate;

	if (pl_parse_rate(value, &rate) == 0 && rate >= 8 && rate <= 1e12)
		return 0;
	pl_diag_set(diag, "\"%s\" is not a rate in bit/s, such as 10M, from 8 to 1000G", value);
	return -EINVAL;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_dp_conf_queue, member)
static const struct pl_conf_row queue_rows[] = {
	{ .key = "limit", .type = PL_CONF_SIZE, AT(limit), .def = "1MiB", .max = UINT32_MAX,
	  .help = "Largest number of bytes that wait; packets beyond are dropped; 0B: no limit." },
	{ .key = "weight", .type = PL_CONF_U64, AT(weight), .def = "0", .max = PL_DP_WEIGHT_MAX,
	  .help = "Share of the class among those with weights; 0: strict priority, the highest class first." },
	{ .key = "rate", .type = PL_CONF_STRING, AT(rate), .check = check_rate,
	  .help = "Rate to which the class is shaped, bit/s; default none." },
	{ .key = "burst", .type = PL_CONF_SIZE, AT(burst), .def = "0B", .max = PL_DP_BURST_MAX,
	  .help = "Bytes that the shaper sends at once after a pause; 0B: one packet." },
	{ .key = "ecn", .type = PL_CONF_SIZE, AT(ecn), .def = "0B", .max = UINT32_MAX,
	  .help = "Depth in bytes from which on ECN-capable packets are marked CE; 0B: never." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dp_conf_port, member)
static const struct pl_conf_row port_rows[] = {
	{ .key = "number", .type = PL_CONF_U64, AT(number), .required = true, .def = "1", .min = 1, .max = PL_DP_PORTS_MAX,
	  .help = "Number of the port, by which tables and actions know it." },
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .check = check_name,
	  .help = "Name of the port on pages and in answers; default port and its number." },
	{ .key = "uri", .type = PL_CONF_STRING, AT(uri), .required = true, .def = "packet:eth1",
	  .help = "Interface of the port: packet:IFACE or afxdp:IFACE." },
	{ .key = "mac", .type = PL_CONF_STRING, AT(mac), .check = check_mac,
	  .help = "MAC address of routed packets that leave; default that of the interface." },
	{ .key = "mtu", .type = PL_CONF_U64, AT(mtu), .def = "1500", .min = 68, .max = 9600,
	  .help = "Largest number of bytes of a frame behind its Ethernet header and VLAN tags." },
	{ .key = "rate", .type = PL_CONF_STRING, AT(rate), .check = check_rate,
	  .help = "Rate of the port, bit/s, such as 100M; default none: sending takes no time." },
	{ .key = "overhead", .type = PL_CONF_U64, AT(overhead), .def = "0", .max = 1000,
	  .help = "Bytes added to each frame when its sending time is computed; 24 on Ethernet (preamble, FCS, gap)." },
	{ .key = "limit", .type = PL_CONF_SIZE, AT(limit), .def = "0B", .max = UINT32_MAX,
	  .help = "Largest number of bytes that wait in all queues of the port together; 0B: no limit." },
	{ .key = "queues", .type = PL_CONF_LIST, AT(queues), .rows = queue_rows, .item_size = sizeof(struct pl_dp_conf_queue), .max = PL_DP_CLASSES_MAX,
	  .help = "Queues of the port, class 0 first; default one." },
	{ .key = "addresses", .type = PL_CONF_STRINGS, AT(addresses), .max = PL_DP_ADDRESSES_MAX,
	  .help = "IPv4 and IPv6 addresses of the port: the switch answers ARP, neighbour solicitations and pings, and sends ICMP errors for packets that it drops because of TTL, MTU or a missing route." },
	{ .key = "icmp", .type = PL_CONF_U64, AT(icmp), .def = "100", .max = 1000000,
	  .help = "ICMP errors per second for packets that came in by the port; 0: none." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dp_conf_cells, member)
static const struct pl_conf_row cell_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "c1", .check = check_name,
	  .help = "Name, for actions and for reading." },
	{ .key = "size", .type = PL_CONF_U64, AT(size), .def = "1", .min = 1, .max = PL_DP_CELLS_MAX,
	  .help = "Number of cells; actions name one of them by its index." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dp_conf_meter, member)
static const struct pl_conf_row meter_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "m1", .check = check_name,
	  .help = "Name, for actions and for reading." },
	{ .key = "size", .type = PL_CONF_U64, AT(size), .def = "1", .min = 1, .max = PL_DP_CELLS_MAX,
	  .help = "Number of meters; actions name one of them by its index." },
	{ .key = "rate", .type = PL_CONF_STRING, AT(rate), .required = true, .def = "10M", .check = check_rate,
	  .help = "Committed rate, bit/s: packets within it are green." },
	{ .key = "burst", .type = PL_CONF_SIZE, AT(burst), .def = "15000B", .min = 64, .max = UINT64_C(1) << 30,
	  .help = "Committed burst." },
	{ .key = "peak_rate", .type = PL_CONF_STRING, AT(peak_rate), .check = check_rate,
	  .help = "Peak rate, bit/s, not below `rate`: packets beyond it are red (two rates, RFC 2698); without it one rate (RFC 2697)." },
	{ .key = "peak_burst", .type = PL_CONF_SIZE, AT(peak_burst), .def = "0B", .max = UINT64_C(1) << 30,
	  .help = "Peak burst (two rates), or excess burst (one rate): packets within it are yellow." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dp_conf_group, member)
static const struct pl_conf_row group_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "up", .check = check_name,
	  .help = "Name, for the action select." },
	{ .key = "members", .type = PL_CONF_STRINGS, AT(members), .required = true, .def = "[ forward 1, forward 2 ]", .min = 1, .max = 64,
	  .help = "Actions of each member; the flow hash chooses one, so that a flow keeps its path." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dp_conf_table, member)
static const struct pl_conf_row table_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "routes", .check = check_name,
	  .help = "Name of the table." },
	{ .key = "stage", .type = PL_CONF_CHOICE, AT(stage), .def = "ingress", .choices = stages,
	  .help = "ingress: before the queue; egress: behind it, when depth and residence are known." },
	{ .key = "key", .type = PL_CONF_STRINGS, AT(key), .max = PL_DP_FIELDS_MAX,
	  .help = "Fields that the table matches, each with its kind: exact, prefix, ternary, range or window. None: every packet misses." },
	{ .key = "size", .type = PL_CONF_U64, AT(size), .def = "1024", .min = 1, .max = PL_DP_ENTRIES_MAX,
	  .help = "Largest number of entries." },
	{ .key = "miss", .type = PL_CONF_STRING, AT(miss),
	  .help = "Actions of packets that no entry matches; default none, the next table follows." },
	{ .key = "entries", .type = PL_CONF_STRINGS, AT(entries), .max = PL_DP_ENTRIES_MAX,
	  .help = "Entries at the start: [priority N] FIELD=VALUE... -> ACTION; ACTION..." },
	{ 0 },
};
#undef AT

static const char *const directions[] = { "in", "out", NULL };
static const char *const roles[] = { "meter", "marker", "unmarker", NULL };
static const char *const bys[] = { "flow", "hosts", "none", NULL };

#define AT(member) .offset = offsetof(struct pl_dp_conf_point, member)
static const struct pl_conf_row point_rows[] = {
	{ .key = "number", .type = PL_CONF_U64, AT(number), .required = true, .def = "1", .max = UINT32_MAX,
	  .help = "Number of the measurement point in records, unique in the whole network." },
	{ .key = "port", .type = PL_CONF_U64, AT(port), .def = "0", .max = PL_DP_PORTS_MAX,
	  .help = "Port of the point; none with `cells`." },
	{ .key = "direction", .type = PL_CONF_CHOICE, AT(direction), .def = "in", .choices = directions,
	  .help = "in: packets that come in by the port; out: packets that leave by it." },
	{ .key = "role", .type = PL_CONF_CHOICE, AT(role), .def = "meter", .choices = roles,
	  .help = "meter: counts; marker: colours and counts; unmarker: counts and removes the marks, at the edge of the domain." },
	{ .key = "by", .type = PL_CONF_CHOICE, AT(by), .def = "flow", .choices = bys,
	  .help = "Which packets are counted together: flow (5-tuple), hosts (addresses), none (all)." },
	{ .key = "cells", .type = PL_CONF_STRING, AT(cells), .check = check_name,
	  .help = "Prefix of the counters and registers that tables fill, in place of a port: with m m.packets, m.late, m.early, m.beyond, m.pulses, m.bytes, m.sum, m.first, m.pulse." },
	{ .key = "table", .type = PL_CONF_STRING, AT(table), .check = check_name,
	  .help = "With `cells`: the table whose entries give the packets of each flow their number (action mark)." },
	{ .key = "flows", .type = PL_CONF_U64, AT(flows), .def = "1024", .min = 1, .max = 1u << 20,
	  .help = "Largest number of flows that the point follows; packets of more are counted as without_room." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dp_conf, member)
const struct pl_conf_row pl_dp_conf_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .def = "switch", .check = check_name,
	  .help = "Name of the switch." },
	{ .key = "id", .type = PL_CONF_U64, AT(id), .def = "1", .min = 1, .max = UINT32_MAX,
	  .help = "Id of the node in telemetry." },
	{ .key = "control", .type = PL_CONF_STRING, AT(control),
	  .help = "Path of the control socket; none without it." },
	{ .key = "truth", .type = PL_CONF_STRING, AT(truth),
	  .help = "Folder of a history with an event for each packet that the switch drops, the last 8192; none without it." },
	{ .key = "clock.offset", .type = PL_CONF_STRING, AT(clock_offset), .check = pl_dp_clock_check_offset,
	  .help = "Offset of the node's clock from that of the host, such as 5ms or -5ms; default none." },
	{ .key = "clock.drift", .type = PL_CONF_STRING, AT(clock_drift), .check = pl_dp_clock_check_drift,
	  .help = "Drift of the node's clock in ppm from the start on; above 0 it is fast; default none." },
	{ .key = "ports", .type = PL_CONF_LIST, AT(ports), .rows = port_rows, .item_size = sizeof(struct pl_dp_conf_port), .min = 1, .max = PL_DP_PORTS_MAX, .required = true,
	  .help = "Ports." },
	{ .key = "counters", .type = PL_CONF_LIST, AT(counters), .rows = cell_rows, .item_size = sizeof(struct pl_dp_conf_cells), .max = PL_DP_NAMED_MAX,
	  .help = "Counters of packets and bytes, for the action count." },
	{ .key = "meters", .type = PL_CONF_LIST, AT(meters), .rows = meter_rows, .item_size = sizeof(struct pl_dp_conf_meter), .max = PL_DP_NAMED_MAX,
	  .help = "Meters, for the actions meter and police." },
	{ .key = "registers", .type = PL_CONF_LIST, AT(registers), .rows = cell_rows, .item_size = sizeof(struct pl_dp_conf_cells), .max = PL_DP_NAMED_MAX,
	  .help = "Registers of 64-bit numbers, for the actions read and write." },
	{ .key = "groups", .type = PL_CONF_LIST, AT(groups), .rows = group_rows, .item_size = sizeof(struct pl_dp_conf_group), .max = PL_DP_NAMED_MAX,
	  .help = "Groups of equal paths, for the action select." },
	{ .key = "tables", .type = PL_CONF_LIST, AT(tables), .rows = table_rows, .item_size = sizeof(struct pl_dp_conf_table), .max = PL_DP_TABLES_MAX,
	  .help = "Tables, in the order in which packets pass them." },
	{ .key = "marking.method", .type = PL_CONF_CHOICE, AT(marking.method), .def = "step", .choices = pl_mark_methods,
	  .help = "Method of alternate marking: step, pulse, double or multiplexed." },
	{ .key = "marking.period", .type = PL_CONF_DURATION, AT(marking.period), .def = "1s", .min = 1000, .max = UINT64_C(3600000000000),
	  .help = "Duration of a block." },
	{ .key = "marking.bits", .type = PL_CONF_STRINGS, AT(marking.bits), .def = "[ dscp:0 ]", .min = 1, .max = 2,
	  .help = "Bit of the colour, such as dscp:0 or ipv4-reserved; with method double also the bit of the pulse." },
	{ .key = "marking.clock_error", .type = PL_CONF_DURATION, AT(marking.clock_error), .def = "1ms", .max = UINT64_C(3600000000000),
	  .help = "Largest difference between the clocks of two points, for the guard band." },
	{ .key = "marking.delay", .type = PL_CONF_DURATION, AT(marking.delay), .def = "50ms", .max = UINT64_C(3600000000000),
	  .help = "Mean delay from the marker to the last point, for the guard band." },
	{ .key = "marking.deviation", .type = PL_CONF_DURATION, AT(marking.deviation), .def = "10ms", .max = UINT64_C(3600000000000),
	  .help = "Standard deviation of the delay; the guard band includes three times this." },
	{ .key = "marking.points", .type = PL_CONF_LIST, AT(marking.points), .rows = point_rows, .item_size = sizeof(struct pl_dp_conf_point), .max = 512,
	  .help = "Measurement points of alternate marking." },
	{ .key = "marking.send", .type = PL_CONF_STRING, AT(marking.send),
	  .help = "Destination to which the switch itself sends block records (tmpkt/1): to=ADDRESS[:PORT] from=ADDRESS out=PORT mac=MAC, as for the action record." },
	{ .key = "marking.to", .type = PL_CONF_STRINGS, AT(marking.to), .max = 8,
	  .help = "Outputs of the host for block records: file:PATH, udp://HOST:PORT, region:PATH and the other outputs of a tap." },
	{ 0 },
};
#undef AT
/* clang-format on */
