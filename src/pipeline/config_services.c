/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of services beside the collection of reports: regions, translator, memory
 * server. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "dta/limits.h"
#include "netio/port.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "record/record.h"

#define ROCE          "roce://"
#define VERBS         "verbs:"
#define NAME_BYTES    64

#define SILENT_NS     UINT64_C(300000000000) /* the default of rdma.silent */
#define SILENT_MIN_NS UINT64_C(1000000000)

/* In the order of enum pl_config_writer. */
static const char *const writers[] = { "other", "dta", "rdma", "output", NULL };
const char *const pl_config_dta_forms[] = { "tracking", "plain", NULL };
const char *const pl_config_roce_versions[] = { "v1", "v2", NULL };

static int check_region_name(const char *value, struct pl_diag *diag)
{
	const size_t n =
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	if (n > 0 && n <= NAME_BYTES && value[n] == '\0')
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"a region's name has 1 to %d letters, digits, '_', '-' and '.'", NAME_BYTES);
}

/* In the order of enum pl_value_format. */
static const char *const formats[] = { "hex", "u8", "u16be", "u16le", "u32be", "u32le", "u64be",
	"u64le", "record", NULL };
static const char *const beginnings[] = { "new", "all", NULL };

/* Checks that struct pl_value can hold the name. */
static int check_value_name(const char *value, struct pl_diag *diag)
{
	const size_t max = sizeof(struct pl_text16) - 1;

	if (strlen(value) <= max && check_region_name(value, NULL) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"a value's name has 1 to %zu letters, digits, '_', '-' and '.'", max);
}

/* clang-format off */
#define AT(member) .offset = offsetof(struct pl_config_region, member)
const struct pl_conf_row pl_config_region_rows[] = {
	{ .key = "name", .type = PL_CONF_STRING, AT(name), .required = true, .def = "last", .check = check_region_name,
	  .help = "Name of the region, for the metrics page and for peers." },
	{ .key = "path", .type = PL_CONF_STRING, AT(path), .required = true, .def = "/var/lib/pathline/last.plr",
	  .help = "File of the region." },
	{ .key = "writer", .type = PL_CONF_CHOICE, AT(writer), .def = "other", .choices = writers,
	  .help = "Writer of the region. dta: the translator of this process; rdma: peers of its memory server; output: an output of the type dta; other: another process. A reload adds and removes regions of other writers and of outputs." },
	{ .key = "read.every", .type = PL_CONF_DURATION, AT(read.every_ns), .def = "1s", .max = UINT64_C(3600000000000),
	  .help = "Interval at which the region is read; 0s: it is not read, and only its fill and heads are shown, as those of regions with writer: output, whose records the outputs have already." },
	{ .key = "read.tell", .type = PL_CONF_BOOL, AT(read.tell), .def = "true",
	  .help = "Give new entries and changed values to the outputs, tail and the table of values; false: only count it." },
	{ .key = "read.from", .type = PL_CONF_CHOICE, AT(read.from), .def = "new", .choices = beginnings,
	  .help = "new: entries and changes after the start; all: also those that exist at the start. A file that is created while the process runs is read from its beginning." },
	{ .key = "value.format", .type = PL_CONF_CHOICE, AT(value.format), .def = "hex", .choices = formats,
	  .help = "Contents of an entry of a list or of a value of key-write: a number of so many bits, record (a record of pathline, of the kind that the region has), or hex (bytes without a meaning). Counters are numbers." },
	{ .key = "value.at", .type = PL_CONF_U64, AT(value.at), .def = "0", .max = 4087,
	  .help = "Offset of the number in the entry, in bytes." },
	{ .key = "value.name", .type = PL_CONF_STRING, AT(value.name), .check = check_value_name,
	  .help = "Meaning of the number, such as queue_depth." },
	{ .key = "alert.above", .type = PL_CONF_STRING, AT(alert.above), .check = pl_config_check_number,
	  .help = "Event value_high when the value of a slot, cell, list or sketch is above this; by default none. Of key-write and append it is the number of value.format. This and all of alert is changed by a reload." },
	{ .key = "alert.low", .type = PL_CONF_STRING, AT(alert.low), .check = pl_config_check_number,
	  .help = "value_high ends at or below this; by default at alert.above." },
	{ .key = "alert.below", .type = PL_CONF_STRING, AT(alert.below), .check = pl_config_check_number,
	  .help = "Event value_low when the value is below this; by default none." },
	{ .key = "alert.high", .type = PL_CONF_STRING, AT(alert.high), .check = pl_config_check_number,
	  .help = "value_low ends at or above this; by default at alert.below." },
	{ .key = "alert.rate", .type = PL_CONF_STRING, AT(alert.rate), .check = pl_config_check_number,
	  .help = "Event value_rate when the value grows by more than this per second; by default none. Of counters it is the increase between two readings, of others the growth from one value to the next." },
	{ .key = "alert.begin_hold", .type = PL_CONF_DURATION, AT(alert.begin_hold_ns), .def = "0s", .max = UINT64_C(864000000000000),
	  .help = "Time for which every reading must be beyond the bound before the event begins; 0s: the first one is enough." },
	{ .key = "alert.end_hold", .type = PL_CONF_DURATION, AT(alert.end_hold_ns), .def = "1s", .min = 1000000, .max = UINT64_C(864000000000000),
	  .help = "Time for which every reading must be back before the event ends." },
	{ 0 },
};
#undef AT

#define AT(member) .offset = offsetof(struct pl_config, member)
static const struct pl_conf_row rows[] = {
#include "pipeline/config_services.def"
	{ 0 },
};
#undef AT
/* clang-format on */

int pl_config_check_live(const char *value, struct pl_diag *diag)
{
	const char *scheme = pl_port_uri_scheme(value);

	if (scheme != NULL && strcmp(scheme, "pcap") != 0)
		return pl_port_uri_sockets(value, diag) < 0 ? -EINVAL : 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is not a port for reports such as udp://:40040; \"pathline translate\" reads captures",
		value);
}

int pl_config_check_roce(const char *value, struct pl_diag *diag)
{
	if (strncmp(value, ROCE, strlen(ROCE)) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" does not begin with %s", value, ROCE);
}

int pl_config_check_control(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;
	uint16_t port;

	if (strcmp(value, "none") == 0 || pl_parse_endpoint(value, &addr, &port) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is neither ADDRESS:PORT nor none", value);
}

int pl_config_check_store_rate(const char *value, struct pl_diag *diag)
{
	uint32_t store;
	double rate;

	if (pl_dta_rate_parse(value, &store, &rate) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\" is neither RATE nor STORE=RATE with a rate above 0, such as 2=5k", value);
}

int pl_config_check_above(const char *value, struct pl_diag *diag)
{
	struct pl_dta_filter filter;
	uint32_t store;

	if (pl_dta_above_parse(value, &store, &filter) == 0)
		return 0;
	return pl_diag_fail(
		diag, -EINVAL, "\"%s\" is neither STORE=VALUE nor STORE=VALUE@OFFSET+WIDTH", value);
}

int pl_config_check_gid(const char *value, struct pl_diag *diag)
{
	struct pl_addr addr;

	if (pl_parse_addr(value, &addr) == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "\"%s\" is neither an IPv4 nor an IPv6 address", value);
}

static unsigned int count_regions(const struct pl_config *c, enum pl_config_writer writer)
{
	const struct pl_config_region *r = c->regions.items;
	unsigned int n = 0;

	for (size_t i = 0; i < c->regions.n; i++)
		n += r[i].writer == writer;
	return n;
}

int pl_config_add_region(struct pl_config *c, enum pl_config_writer writer, const char *name,
	size_t name_len, const char *path)
{
	struct pl_config_region *r = reallocarray(c->regions.items, c->regions.n + 1, sizeof(*r)),
				*one;

	if (r == NULL)
		return -ENOMEM;
	c->regions.items = r;
	one = &r[c->regions.n];
	memset(one, 0, sizeof(*one));
	if (pl_conf_defaults(pl_config_region_rows, one) < 0)
		return -ENOMEM;
	c->regions.n++;
	free(one->name);
	free(one->path);
	one->name = strndup(name, name_len);
	one->path = strdup(path);
	one->writer = writer;
	return one->name != NULL && one->path != NULL ? 0 : -ENOMEM;
}

static int check_regions(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_region *r = c->regions.items;

	for (size_t i = 0; i < c->regions.n; i++) {
		for (size_t k = 0; k < i; k++) {
			const bool name = strcmp(r[i].name, r[k].name) == 0;

			if (!name && strcmp(r[i].path, r[k].path) != 0)
				continue;
			return pl_diag_fail(diag, -EINVAL, "regions %zu and %zu have the same %s",
				k + 1, i + 1, name ? "name" : "path");
		}
	}
	return 0;
}

static int check_reading(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_region *r = c->regions.items;
	const size_t max = sizeof(struct pl_text32) - 1;

	for (size_t i = 0; i < c->regions.n; i++) {
		if (r[i].read.every_ns == 0 || strlen(r[i].name) <= max)
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"region %zu: the name of a region that is read has at most %zu characters (or read.every: 0s)",
			i + 1, max);
	}
	return 0;
}

bool pl_config_reads_region(const struct pl_config_region *r)
{
	return r->read.every_ns > 0 && r->writer != PL_WRITER_OUTPUT;
}

bool pl_config_reads(const struct pl_config *c)
{
	const struct pl_config_region *r = c->regions.items;

	for (size_t i = 0; i < c->regions.n; i++) {
		if (pl_config_reads_region(&r[i]))
			return true;
	}
	return false;
}

/* Regions of dta.to are elsewhere: the translator counts them when it starts. */
static int check_dta_stores(const struct pl_config *c, struct pl_diag *diag)
{
	const unsigned int n = count_regions(c, PL_WRITER_DTA);
	char *const *rates = c->dta.store_rates.items, *const *above = c->dta.above.items;
	struct pl_dta_filter filter;
	const char *wrong = NULL;
	uint32_t store;
	double rate;

	for (size_t i = 0; i < c->dta.store_rates.n; i++) {
		if (pl_dta_rate_parse(rates[i], &store, &rate) == 0 &&
			store != PL_DTA_EVERY_STORE && store >= n)
			wrong = rates[i];
	}
	for (size_t i = 0; i < c->dta.above.n; i++) {
		if (pl_dta_above_parse(above[i], &store, &filter) == 0 && store >= n)
			wrong = above[i];
	}
	if (wrong == NULL || c->dta.to != NULL)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"dta: \"%s\" names a region above the last: those with writer: dta are 0 to %u",
		wrong, n - 1);
}

static int check_dta(const struct pl_config *c, struct pl_diag *diag)
{
	const unsigned int n = count_regions(c, PL_WRITER_DTA);
	const char *wrong = NULL;

	if (c->dta.listen == NULL)
		wrong = c->dta.to != NULL ? "dta.to without dta.listen: no translator runs"
			: n > 0 ? "a region has writer: dta, but there is no dta.listen: no translator runs"
				: NULL;
	else if (c->dta.to == NULL && n == 0)
		wrong = "dta.listen without a region that has writer: dta, or dta.to: the translator has "
			"nowhere to write";
	else if (c->dta.to != NULL && n > 0)
		wrong = "dta.to and a region with writer: dta: the translator writes to one of both";
	else if (c->dta.to != NULL && (c->dta.epoch_ns != 0 || c->dta.keep_epochs != NULL))
		wrong = "dta.to with dta.epoch or dta.keep_epochs: epochs are the collectors'";
	if (wrong == NULL)
		return c->dta.listen != NULL ? check_dta_stores(c, diag) : 0;
	return pl_diag_fail(diag, -EINVAL, "%s", wrong);
}

/* An RDMA NIC has its own rules for requests. */
static const char *wrong_for_nic(const struct pl_config *c)
{
	if (c->rdma.check_mac || c->rdma.any_mac || c->rdma.min_ttl != 0 ||
		c->rdma.vlan != PL_CONFIG_ANY_VLAN || c->rdma.max_jump != 0)
		return "check_mac, any_mac, min_ttl, vlan and max_jump need the software NIC, not an "
		       "RDMA NIC";
	if (c->rdma.silent_ns != SILENT_NS)
		return "silent needs the software NIC, not an RDMA NIC";
	return NULL;
}

const char *pl_config_wrong_rdma(const struct pl_config *c)
{
	const char *interface = c->rdma.interface;

	if (interface == NULL)
		return count_regions(c, PL_WRITER_RDMA) > 0
			       ? "a region has writer: rdma, but there is no rdma.interface: no memory "
				 "server runs"
			       : NULL;
	if (count_regions(c, PL_WRITER_RDMA) == 0)
		return "an interface without a region that has writer: rdma: peers have nothing to "
		       "write";
	if (strcmp(c->rdma.listen, "none") == 0 && c->rdma.cm_port == 0 &&
		c->rdma.peer_switch.controller == NULL)
		return "listen is none and cm_port 0: no peer can connect";
	if (c->rdma.peers_each > c->rdma.peers)
		return "peers_each is more than peers";
	if (c->rdma.silent_ns > 0 && c->rdma.silent_ns < SILENT_MIN_NS)
		return "silent is at least 1s, or 0s";
	return strncmp(interface, VERBS, strlen(VERBS)) == 0 ? wrong_for_nic(c) : NULL;
}

static int check_rdma(const struct pl_config *c, struct pl_diag *diag)
{
	const char *wrong = pl_config_wrong_rdma(c);

	if (wrong == NULL)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "rdma: %s", wrong);
}

int pl_config_check_services(const struct pl_config *c, struct pl_diag *diag)
{
	int r = check_regions(c, diag);

	if (r == 0)
		r = check_reading(c, diag);
	if (r == 0)
		r = check_dta(c, diag);
	if (r == 0)
		r = check_rdma(c, diag);
	if (r == 0)
		r = pl_config_check_taps(c, diag);
	if (r == 0)
		r = pl_config_check_marks(c, diag);
	if (r == 0)
		r = pl_config_check_interfaces(c, diag);
	return r == 0 ? pl_config_check_queries(c, diag) : r;
}

bool pl_config_has_services(const struct pl_config *c)
{
	return c->dta.listen != NULL || c->rdma.interface != NULL || c->taps.n > 0 ||
	       c->queries.n > 0 || c->marks.n > 0;
}

/* Writes the keys that are fixed at the start: not regions of other writers or of outputs, which
 * may come and go. */
static void dump(const struct pl_config *c, struct pl_buf *out)
{
	const struct pl_config_region *r = c->regions.items;
	struct pl_config own = *c;

	own.regions = own.taps = own.queries = own.marks = (struct pl_conf_list){ .items = NULL };
	pl_conf_dump(rows, &own, out);
	for (size_t i = 0; i < c->regions.n; i++) {
		if (r[i].writer == PL_WRITER_DTA || r[i].writer == PL_WRITER_RDMA)
			pl_buf_printf(out, "%s=%s:%u\n", r[i].name, r[i].path, r[i].writer);
	}
}

bool pl_config_same_services(const struct pl_config *a, const struct pl_config *b)
{
	return pl_config_same(a, b, dump);
}

/* Rounded up: families of the translator and of each collector it writes to, of the memory server,
 * and of each region and its lists. */
uint64_t pl_config_services_series(const struct pl_config *c)
{
	enum {
		OF_DTA = 192,
		OF_COLLECTORS = 64 * 24,
		OF_RDMA = 192,
		OF_REGION = 32 + 64,
		OF_TAP = 160,
		OF_MARKS = 32,
		OF_SEGMENT = 64, /* and a point */
		OF_QUERY = 48,
		OF_QUERY_OUTPUT = 16, /* a topic */
		OF_QUERY_COLUMNS = 8
	};

	const struct pl_config_query *q = c->queries.items;
	const struct pl_config_marks *m = c->marks.items;
	uint64_t queries = 0, marks = 0;

	for (size_t i = 0; i < c->queries.n; i++)
		queries += OF_QUERY + OF_QUERY_OUTPUT * q[i].to.n + OF_QUERY_COLUMNS * q[i].series;
	for (size_t i = 0; i < c->marks.n; i++)
		marks += OF_TAP + OF_MARKS +
			 OF_SEGMENT * 2 * (m[i].points.n + m[i].links.n + m[i].zoom.n);
	return queries + marks +
	       (c->dta.listen != NULL ? OF_DTA + (c->dta.to != NULL ? OF_COLLECTORS : 0) : 0) +
	       (c->rdma.interface != NULL ? OF_RDMA : 0) + (c->regions.n > 0) +
	       OF_REGION * c->regions.n + OF_TAP * c->taps.n;
}
