/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the file of a chain. */
#include "chain/dta_conf.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "dta/translator.h"
#include "rdma/exchange.h"

static const char *const primitives[] = { "key-write", "append", "counters", "postcards", "sketch",
	NULL };
static const char *const hashes[] = { "pathline", "dta", NULL };
static const char *const kinds[] = { "count-min", "hyperloglog", NULL };
static const char *const services[] = { "uc", "rc", NULL };

/* What separates words in the arguments that are made of it must not be in a name. */
static int check_name(const char *value, struct pl_diag *diag)
{
	if (value[0] != '\0' && strlen(value) <= PL_EXCHANGE_NAME_MAX &&
		value[strspn(value,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] ==
			'\0')
		return 0;
	pl_diag_set(diag, "a name has 1 to %d letters, digits, _ or -", PL_EXCHANGE_NAME_MAX);
	return -EINVAL;
}

static int check_listen(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	if (pl_parse_endpoint(value, &addr, &port) == 0 && port != 0 &&
		!pl_addr_is_unspecified(&addr))
		return 0;
	pl_diag_set(diag, "'%s' is not an address and port, such as 10.0.0.2:7471", value);
	return -EINVAL;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_dta_conf_store, member)
static const struct pl_conf_row store_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "last", .check = check_name,
	  .help = "Name of the region and of its store." },
	{ .key = "primitive", .type = PL_CONF_CHOICE, AT(primitive), .def = "key-write", .choices = primitives,
	  .help = "Primitive of the store." },
	{ .key = "slots", .type = PL_CONF_U64, AT(slots), .def = "1048576", .min = 1, .max = UINT64_C(1) << 40,
	  .help = "Slots, entries of a list, cells of a row, chunks, columns of a sketch." },
	{ .key = "value_bytes", .type = PL_CONF_U64, AT(value_bytes), .def = "4", .min = 4, .max = 1000,
	  .help = "key-write, append: bytes of a value or entry." },
	{ .key = "copies", .type = PL_CONF_U64, AT(copies), .def = "2", .min = 1, .max = PL_COPIES_MAX,
	  .help = "key-write, postcards: copies of each value or path." },
	{ .key = "lists", .type = PL_CONF_U64, AT(lists), .def = "4", .min = 1, .max = 1u << 20,
	  .help = "append: number of lists." },
	{ .key = "rows", .type = PL_CONF_U64, AT(rows), .def = "4", .min = 1, .max = PL_ROWS_MAX,
	  .help = "counters, count-min: number of rows." },
	{ .key = "hops", .type = PL_CONF_U64, AT(hops), .def = "5", .min = 1, .max = PL_HOPS_MAX,
	  .help = "postcards: hops of the longest path." },
	{ .key = "kind", .type = PL_CONF_CHOICE, AT(kind), .def = "count-min", .choices = kinds,
	  .help = "sketch: kind; hyperloglog has one row of registers of one byte." },
	{ .key = "cell_bytes", .type = PL_CONF_U64, AT(cell_bytes), .def = "8", .min = 4, .max = 8,
	  .help = "count-min: bytes of a cell, 4 or 8." },
	{ .key = "hash", .type = PL_CONF_CHOICE, AT(hash), .def = "pathline", .choices = hashes,
	  .help = "Hash of keys; dta places keys as the published code of DTA does, where copies do not help each other." },
	{ .key = "reports", .type = PL_CONF_U64, AT(reports), .def = "0", .max = UINT64_C(1) << 32,
	  .help = "Number of reports to generate for the store; their answers are checked at the end." },
	{ .key = "reporters", .type = PL_CONF_U64, AT(reporters), .def = "1", .min = 1, .max = PL_DTA_CONF_REPORTERS_MAX,
	  .help = "sketch: number of reporters, which deliver `reports` each; the same for all sketches." },
	{ .key = "rate", .type = PL_CONF_DOUBLE, AT(rate), .def = "20000", .min = 1, .max = 10000000,
	  .help = "Reports per second." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dta_conf_collector, member)
static const struct pl_conf_row collector_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "c1", .check = check_name,
	  .help = "Name of the collector; its regions are FOLDER/NAME-STORE.plr, created if missing." },
	{ .key = "interface", .type = PL_CONF_STRING, AT(interface), .required = true, .def = "packet:eth1",
	  .help = "Interface on which it receives RoCE: packet:IFACE, afxdp:IFACE or, without privileges, udp://ADDRESS." },
	{ .key = "listen", .type = PL_CONF_STRING, AT(listen), .required = true, .def = "10.0.0.2:7471", .check = check_listen,
	  .help = "Address and port on which it accepts translators." },
	{ .key = "allow", .type = PL_CONF_STRINGS, AT(allow), .max = PL_DTA_CONF_ALLOW_MAX,
	  .help = "Prefixes of the addresses that may connect and write, such as that of the translator; required, except on the loopback." },
	{ .key = "netns", .type = PL_CONF_STRING, AT(netns),
	  .help = "Network namespace of the collector, by name (/run/netns) or path." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dta_conf, member)
const struct pl_conf_row pl_dta_conf_rows[] = {
	{ .key = "folder", .type = PL_CONF_STRING, AT(folder),
	  .help = "Folder of the regions; by default a new folder in /dev/shm that is removed at the end." },
	{ .key = "lab", .type = PL_CONF_BOOL, AT(lab), .def = "false",
	  .help = "Create two network namespaces with a veth pair between them, one collector in the second; without root, use the loopback." },
	{ .key = "seed", .type = PL_CONF_U64, AT(seed), .def = "0",
	  .help = "Seed of the hashes of new regions; 0: random." },
	{ .key = "restarts", .type = PL_CONF_U64, AT(restarts), .def = "0", .max = 1000000,
	  .help = "Number of times that a collector that ends by itself is restarted on its regions; after that the chain ends." },
	{ .key = "epoch", .type = PL_CONF_DURATION, AT(epoch_ns), .def = "0s",
	  .help = "New regions of key-write, counters and postcards begin an epoch this often, and keep old ones in files; 0s: never." },
	{ .key = "stores", .type = PL_CONF_LIST, AT(stores), .rows = store_rows, .item_size = sizeof(struct pl_dta_conf_store), .min = 1, .max = PL_DTA_CONF_STORES_MAX, .required = true,
	  .help = "Stores of every collector, in the order of their numbers in reports." },
	{ .key = "collectors", .type = PL_CONF_LIST, AT(collectors), .rows = collector_rows, .item_size = sizeof(struct pl_dta_conf_collector), .max = PL_COLLECTORS_MAX,
	  .help = "Collectors; a laboratory has one, which needs no configuration." },
	{ .key = "translator.listen", .type = PL_CONF_STRING, AT(listen), .def = "udp://127.0.0.1:40040",
	  .help = "URI on which the translator receives reports." },
	{ .key = "translator.interface", .type = PL_CONF_STRING, AT(interface),
	  .help = "Interface to the collectors: packet:IFACE or udp://ADDRESS; not in a laboratory." },
	{ .key = "translator.netns", .type = PL_CONF_STRING, AT(netns),
	  .help = "Network namespace of translator and generators." },
	{ .key = "translator.service", .type = PL_CONF_CHOICE, AT(service), .def = "uc", .choices = services,
	  .help = "Service of plain writes: uc (unreliable connections) or rc (reliable)." },
	{ .key = "translator.dscp", .type = PL_CONF_U64, AT(dscp), .def = "0", .max = 63,
	  .help = "DSCP of the frames to collectors, for networks that treat RoCE by it." },
	{ .key = "translator.ecn", .type = PL_CONF_BOOL, AT(ecn), .def = "true",
	  .help = "Mark these frames ECT(0), so that switches may mark congestion instead of dropping." },
	{ .key = "translator.options", .type = PL_CONF_STRINGS, AT(options), .max = 64,
	  .help = "Further options of pathline translate, one word each." },
	{ 0 },
};
#undef AT
/* clang-format on */

static bool is_sketch(const struct pl_dta_conf_store *s)
{
	return strcmp(primitives[s->primitive], "sketch") == 0;
}

uint64_t pl_dta_conf_reporters(const struct pl_dta_conf *c)
{
	const struct pl_dta_conf_store *stores = c->stores.items;

	for (size_t i = 0; i < c->stores.n; i++) {
		if (is_sketch(&stores[i]))
			return stores[i].reporters;
	}
	return 0;
}

bool pl_dta_conf_turns(const struct pl_dta_conf *c, const struct pl_dta_conf_store *s)
{
	return c->epoch_ns != 0 && !is_sketch(s) && strcmp(primitives[s->primitive], "append") != 0;
}

/* The translator waits for as many reporters for every sketch. */
static int check_reporters(const struct pl_dta_conf *c, size_t i, struct pl_diag *diag)
{
	const struct pl_dta_conf_store *s = (const struct pl_dta_conf_store *)c->stores.items + i;

	if (is_sketch(s) ? s->reporters == pl_dta_conf_reporters(c) : s->reporters == 1)
		return 0;
	pl_diag_set(diag,
		is_sketch(s) ? "\"stores[%zu].reporters\": must be equal for all sketches"
			     : "\"stores[%zu].reporters\": only a sketch can have more than one",
		i);
	return -EINVAL;
}

/* Of stores and of collectors: no two are called alike. */
static int check_twins(const char *list, const char *name, const char *before, size_t i, size_t k,
	struct pl_diag *diag)
{
	if (strcmp(name, before) != 0)
		return 0;
	pl_diag_set(diag, "\"%s[%zu].name\": '%s' is the name of \"%s[%zu]\" already", list, i,
		name, list, k);
	return -EINVAL;
}

static int check_store(const struct pl_dta_conf *c, size_t i, struct pl_diag *diag)
{
	const struct pl_dta_conf_store *stores = c->stores.items;
	struct pl_diag why = { .text = "" };
	struct pl_store_params p;
	uint64_t bytes;

	for (size_t k = 0; k < i; k++) {
		if (check_twins("stores", stores[i].name, stores[k].name, i, k, diag) < 0)
			return -EINVAL;
	}
	if (check_reporters(c, i, diag) < 0)
		return -EINVAL;
	pl_dta_conf_params(c, &stores[i], &p);
	if (pl_store_bytes(&p, &bytes, &why) == 0)
		return 0;
	pl_diag_set(diag, "\"stores[%zu]\" ('%s'): %s", i, stores[i].name, why.text);
	return -EINVAL;
}

static bool starts(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Beyond the loopback a collector takes nobody who is not named. */
static int check_allow(
	const struct pl_dta_conf_collector *collectors, size_t i, struct pl_diag *diag)
{
	const char *interface = collectors[i].interface;
	char *const *allow = collectors[i].allow.items;
	unsigned int bits;
	struct pl_addr addr;

	for (size_t k = 0; k < collectors[i].allow.n; k++) {
		if (pl_parse_prefix(allow[k], &addr, &bits) == 0)
			continue;
		pl_diag_set(diag,
			"\"collectors[%zu].allow\": '%s' is not a prefix such as 10.0.0.5/32", i,
			allow[k]);
		return -EINVAL;
	}
	if (collectors[i].allow.n > 0 || starts(interface, "udp://127.") ||
		starts(interface, "udp://::1") || starts(interface, "udp://[::1]") ||
		strcmp(interface, "packet:lo") == 0)
		return 0;
	pl_diag_set(diag,
		"\"collectors[%zu].allow\": no peer may write to '%s': add the address of the translator, such as [10.0.0.5/32]",
		i, collectors[i].name);
	return -EINVAL;
}

int pl_dta_conf_check(const struct pl_dta_conf *c, struct pl_diag *diag)
{
	const struct pl_dta_conf_collector *collectors = c->collectors.items;

	if (c->stores.n == 0) {
		pl_diag_set(diag, "\"stores\": the chain has no stores");
		return -EINVAL;
	}
	if (c->lab ? c->collectors.n > 0 || c->interface != NULL || c->netns != NULL
		   : c->collectors.n == 0 || c->interface == NULL || c->folder == NULL) {
		pl_diag_set(diag,
			c->lab ? "\"lab\": a laboratory has collectors and interfaces of its own"
			       : "missing \"collectors\", \"translator.interface\" and \"folder\", or lab: true");
		return -EINVAL;
	}
	for (size_t i = 0; i < c->collectors.n; i++) {
		for (size_t k = 0; k < i; k++) {
			if (check_twins("collectors", collectors[i].name, collectors[k].name, i, k,
				    diag) < 0)
				return -EINVAL;
		}
		if (check_allow(collectors, i, diag) < 0)
			return -EINVAL;
	}
	for (size_t i = 0; i < c->stores.n; i++) {
		if (check_store(c, i, diag) < 0)
			return -EINVAL;
	}
	return 0;
}

void pl_dta_conf_params(
	const struct pl_dta_conf *c, const struct pl_dta_conf_store *s, struct pl_store_params *ret)
{
	const bool loglog = s->kind == 1;

	*ret = (struct pl_store_params){ .primitive =
						 pl_primitive_by_name(primitives[s->primitive]),
		.hash = s->hash == 1 ? PL_HASH_DTA : PL_HASH_PATHLINE,
		.seed = s->hash == 1 ? 0 : c->seed };
	switch (ret->primitive) {
	case PL_KEY_WRITE:
		ret->key_write.slots = s->slots;
		ret->key_write.value_bytes = (uint32_t)s->value_bytes;
		ret->key_write.copies = (uint32_t)s->copies;
		break;
	case PL_APPEND:
		ret->append.slots = s->slots;
		ret->append.lists = (uint32_t)s->lists;
		ret->append.entry_bytes = (uint32_t)s->value_bytes;
		ret->append.batch_max = 16;
		ret->append.sealed = 1;
		break;
	case PL_COUNTERS:
		ret->counters.width = s->slots;
		ret->counters.rows = (uint32_t)s->rows;
		ret->counters.shared = s->hash == 1;
		break;
	case PL_SKETCH:
		ret->sketch.columns = s->slots;
		ret->sketch.kind = loglog ? PL_SKETCH_HYPERLOGLOG : PL_SKETCH_COUNT_MIN;
		ret->sketch.rows = loglog ? 1 : (uint32_t)s->rows;
		ret->sketch.cell_bytes = loglog ? 1 : (uint32_t)s->cell_bytes;
		break;
	default:
		ret->postcards.chunks = s->slots;
		ret->postcards.hops = (uint32_t)s->hops;
		ret->postcards.copies = (uint32_t)s->copies;
	}
}

const char pl_dta_conf_demo[] =
	"lab: true\n"
	"stores:\n"
	"  - {name: last, primitive: key-write, slots: 262144, reports: 50000, rate: 10000}\n"
	"  - {name: lists, primitive: append, slots: 65536, lists: 4, value_bytes: 8, reports: 25000, rate: 5000}\n"
	"  - {name: sums, primitive: counters, slots: 65536, rows: 2, reports: 5000, rate: 1000}\n"
	"  - {name: paths, primitive: postcards, slots: 32768, reports: 25000, rate: 5000}\n"
	"  - {name: sketch, primitive: sketch, slots: 4096, reports: 2048, rate: 400}\n";
