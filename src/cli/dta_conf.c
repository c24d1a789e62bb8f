/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/dta_conf.h"

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
	pl_diag_set(diag, "a name is of 1 to %d letters, digits, _ and -", PL_EXCHANGE_NAME_MAX);
	return -EINVAL;
}

static int check_listen(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	if (pl_parse_endpoint(value, &addr, &port) == 0 && port != 0 &&
		!pl_addr_is_unspecified(&addr))
		return 0;
	pl_diag_set(diag, "'%s' is no address and port to connect to, as 10.0.0.2:7471", value);
	return -EINVAL;
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_dta_conf_store, member)
static const struct pl_conf_row store_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "last", .check = check_name,
	  .help = "What the region and its store are called." },
	{ .key = "primitive", .type = PL_CONF_CHOICE, AT(primitive), .def = "key-write", .choices = primitives,
	  .help = "What it is." },
	{ .key = "slots", .type = PL_CONF_U64, AT(slots), .def = "1048576", .min = 1, .max = UINT64_C(1) << 40,
	  .help = "Slots, entries of a list, cells of a row, chunks, columns of a sketch." },
	{ .key = "value_bytes", .type = PL_CONF_U64, AT(value_bytes), .def = "4", .min = 4, .max = 1000,
	  .help = "key-write, append: of a value or an entry." },
	{ .key = "copies", .type = PL_CONF_U64, AT(copies), .def = "2", .min = 1, .max = PL_COPIES_MAX,
	  .help = "key-write, postcards: copies of each." },
	{ .key = "lists", .type = PL_CONF_U64, AT(lists), .def = "4", .min = 1, .max = 1u << 20,
	  .help = "append: how many." },
	{ .key = "rows", .type = PL_CONF_U64, AT(rows), .def = "4", .min = 1, .max = PL_ROWS_MAX,
	  .help = "counters, count-min: how many." },
	{ .key = "hops", .type = PL_CONF_U64, AT(hops), .def = "5", .min = 1, .max = PL_HOPS_MAX,
	  .help = "postcards: the longest path." },
	{ .key = "kind", .type = PL_CONF_CHOICE, AT(kind), .def = "count-min", .choices = kinds,
	  .help = "sketch: what it is; hyperloglog has one row of registers of one byte." },
	{ .key = "cell_bytes", .type = PL_CONF_U64, AT(cell_bytes), .def = "8", .min = 4, .max = 8,
	  .help = "count-min: of a cell, 4 or 8." },
	{ .key = "hash", .type = PL_CONF_CHOICE, AT(hash), .def = "pathline", .choices = hashes,
	  .help = "dta: keys lie where the published code of DTA has them, and copies do not help each other." },
	{ .key = "reports", .type = PL_CONF_U64, AT(reports), .def = "0", .max = UINT64_C(1) << 32,
	  .help = "How many reports are generated for it, whose answers are checked in the end." },
	{ .key = "reporters", .type = PL_CONF_U64, AT(reporters), .def = "1", .min = 1, .max = PL_DTA_CONF_REPORTERS_MAX,
	  .help = "sketch: how many deliver it, each so many reports; the same for all sketches." },
	{ .key = "rate", .type = PL_CONF_DOUBLE, AT(rate), .def = "20000", .min = 1, .max = 10000000,
	  .help = "Of these, per second." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dta_conf_collector, member)
static const struct pl_conf_row collector_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "c1", .check = check_name,
	  .help = "What it is called; its regions are FOLDER/NAME-STORE.plr, made where there are none." },
	{ .key = "interface", .type = PL_CONF_STRING, AT(interface), .required = true, .def = "packet:eth1",
	  .help = "Where its RoCE comes in: packet:IFACE, afxdp:IFACE or, without rights, udp://ADDRESS." },
	{ .key = "listen", .type = PL_CONF_STRING, AT(listen), .required = true, .def = "10.0.0.2:7471", .check = check_listen,
	  .help = "Where translators connect to it." },
	{ .key = "allow", .type = PL_CONF_STRINGS, AT(allow), .max = PL_DTA_CONF_ALLOW_MAX,
	  .help = "Addresses that may connect and write, the translator's, as prefixes; needed but on the loopback." },
	{ .key = "netns", .type = PL_CONF_STRING, AT(netns),
	  .help = "The network namespace it runs in, by name (/run/netns) or path." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_dta_conf, member)
const struct pl_conf_row pl_dta_conf_rows[] = {
	{ .key = "folder", .type = PL_CONF_STRING, AT(folder),
	  .help = "Where regions are; by default a new folder in /dev/shm that goes in the end." },
	{ .key = "lab", .type = PL_CONF_BOOL, AT(lab), .def = "false",
	  .help = "Make two network namespaces with a veth pair between them, one collector in the second; without root, use the loopback." },
	{ .key = "seed", .type = PL_CONF_U64, AT(seed), .def = "0",
	  .help = "Of the hashes of new regions; 0: drawn." },
	{ .key = "restarts", .type = PL_CONF_U64, AT(restarts), .def = "0", .max = 1000000,
	  .help = "How many times a collector that ends by itself is started again on its regions; else the chain ends." },
	{ .key = "epoch", .type = PL_CONF_DURATION, AT(epoch_ns), .def = "0s",
	  .help = "New regions of key-write, counters and postcards begin an epoch this often, and keep old ones in files; 0s: never." },
	{ .key = "stores", .type = PL_CONF_LIST, AT(stores), .rows = store_rows, .item_size = sizeof(struct pl_dta_conf_store), .min = 1, .max = PL_DTA_CONF_STORES_MAX, .required = true,
	  .help = "What every collector has, in the order in which reports name them." },
	{ .key = "collectors", .type = PL_CONF_LIST, AT(collectors), .rows = collector_rows, .item_size = sizeof(struct pl_dta_conf_collector), .max = PL_COLLECTORS_MAX,
	  .help = "Who has regions; in a laboratory there is one, which needs no words." },
	{ .key = "translator.listen", .type = PL_CONF_STRING, AT(listen), .def = "udp://127.0.0.1:40040",
	  .help = "Where reports come in." },
	{ .key = "translator.interface", .type = PL_CONF_STRING, AT(interface),
	  .help = "By which it reaches the collectors: packet:IFACE or udp://ADDRESS; not in a laboratory." },
	{ .key = "translator.netns", .type = PL_CONF_STRING, AT(netns),
	  .help = "The network namespace of translator and generators." },
	{ .key = "translator.service", .type = PL_CONF_CHOICE, AT(service), .def = "uc", .choices = services,
	  .help = "rc: plain writes by reliable connections, too." },
	{ .key = "translator.dscp", .type = PL_CONF_U64, AT(dscp), .def = "0", .max = 63,
	  .help = "The class of its frames to collectors, for networks that treat RoCE by it." },
	{ .key = "translator.ecn", .type = PL_CONF_BOOL, AT(ecn), .def = "true",
	  .help = "Switches may mark these frames instead of dropping them." },
	{ .key = "translator.options", .type = PL_CONF_STRINGS, AT(options), .max = 64,
	  .help = "More options of pathline translate, each a word." },
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
		is_sketch(s) ? "\"stores[%zu].reporters\": all sketches have the same number"
			     : "\"stores[%zu].reporters\": only a sketch has several",
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
		pl_diag_set(diag, "\"collectors[%zu].allow\": '%s' is no prefix, as 10.0.0.5/32", i,
			allow[k]);
		return -EINVAL;
	}
	if (collectors[i].allow.n > 0 || starts(interface, "udp://127.") ||
		starts(interface, "udp://::1") || starts(interface, "udp://[::1]") ||
		strcmp(interface, "packet:lo") == 0)
		return 0;
	pl_diag_set(diag,
		"\"collectors[%zu].allow\": nobody may write to '%s': the translator's address is "
		"needed, as [10.0.0.5/32]",
		i, collectors[i].name);
	return -EINVAL;
}

int pl_dta_conf_check(const struct pl_dta_conf *c, struct pl_diag *diag)
{
	const struct pl_dta_conf_collector *collectors = c->collectors.items;

	if (c->stores.n == 0) {
		pl_diag_set(diag, "\"stores\": there are none");
		return -EINVAL;
	}
	if (c->lab ? c->collectors.n > 0 || c->interface != NULL || c->netns != NULL
		   : c->collectors.n == 0 || c->interface == NULL || c->folder == NULL) {
		pl_diag_set(diag,
			c->lab ? "\"lab\": a laboratory has collectors and interfaces of its own"
			       : "\"collectors\", \"translator.interface\" and \"folder\" are wanted, "
				 "or lab: true");
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
