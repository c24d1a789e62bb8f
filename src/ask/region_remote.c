/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives stores of collectors to a lookup over the network: roce://HOST:PORT[,…]/STORE?dev=… */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ask/region_lookup.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "remote/reader.h"
#include "remote/roce_uri.h"
#include "runtime/confine.h"

#define ECT     2 /* ECT(0) of RFC 3168: routers may mark instead of drop */
#define SECONDS UINT64_C(1000000000)

struct remote {
	const struct pl_region_args *args;
	struct pl_roce_uri uri;
	const char *dev;
	bool by_cm, no_ecn;
	uint64_t dscp, timeout_ns;
	struct pl_nic *nic;
	struct pl_reader *reader;
};

/* ---- the URI ---- */

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int take_key(void *arg, const char *key, const char *value, struct pl_diag *diag)
{
	struct remote *m = arg;
	uint64_t number;

	if (strcmp(key, "dev") == 0) {
		m->dev = value;
	} else if (strcmp(key, "connect") == 0 && is_one_of(value, "tcp", "cm")) {
		m->by_cm = strcmp(value, "cm") == 0;
	} else if (strcmp(key, "ecn") == 0 && is_one_of(value, "on", "off")) {
		m->no_ecn = strcmp(value, "off") == 0;
	} else if (strcmp(key, "dscp") == 0 && pl_parse_u64(value, &number) == 0 && number <= 63) {
		m->dscp = number;
	} else if (strcmp(key, "timeout") == 0 && pl_parse_duration(value, &m->timeout_ns) == 0 &&
		   m->timeout_ns >= SECONDS / 10 && m->timeout_ns <= 60 * SECONDS) {
		return 0;
	} else if (strcmp(key, "service") != 0 && strcmp(key, "queue") != 0 &&
		   strcmp(key, "window") != 0) {
		/* These three are for writing: a translator's URI is accepted as it is. */
		return pl_diag_fail(diag, -EINVAL,
			"roce: invalid '%s=%s': keys of a lookup are dev=packet:IFACE or udp://ADDRESS, connect=tcp or cm, timeout=100ms to 60s, dscp=0 to 63, ecn=on or off",
			key, value);
	}
	return 0;
}

static int check_uri(struct remote *m, struct pl_diag *diag)
{
	const uint64_t store = m->args->store;

	if (m->dev == NULL)
		pl_diag_set(diag,
			"roce: missing interface: add ?dev=packet:IFACE or ?dev=udp://ADDRESS");
	else if (strncmp(m->dev, "verbs:", 6) == 0)
		pl_diag_set(diag,
			"roce: a lookup reads by the software NIC only: write dev=packet:IFACE or dev=udp://ADDRESS instead of dev=%s",
			m->dev);
	else if (m->args->collectors.n > 0)
		pl_diag_set(diag,
			"--collector names files: write all collectors into the URI, separated by commas");
	else if (m->uri.n_stores > 1 && store >= m->uri.n_stores)
		pl_diag_set(diag, "--store: the URI has stores 0 to %u", m->uri.n_stores - 1);
	else
		return 0;
	return -EINVAL;
}

/* ---- opening ---- */

/* Gives up privileges once the interface is open. */
static int give_up_rights(struct pl_diag *diag)
{
	const struct pl_privilege_options options = { .user = NULL };
	struct pl_confine c;
	int r;

	pl_confine_init(&c, &options);
	r = pl_confine(&c, diag);
	if (r == 0 && pl_confine_gap(&c) != NULL)
		pl_complain("%s", pl_confine_gap(&c));
	pl_confine_end(&c);
	return r;
}

static int open_reader(struct remote *m, struct pl_diag *diag)
{
	const unsigned int store = m->uri.n_stores > 1 ? (unsigned int)m->args->store : 0;
	struct pl_reader_options options = { .servers = m->uri.servers,
		.n_servers = m->uri.n_servers,
		.store = m->uri.stores[store],
		.by_cm = m->by_cm,
		.tos = (uint8_t)(m->dscp << 2 | (m->no_ecn ? 0 : ECT)),
		.timeout_ns = m->timeout_ns };
	int r = pl_nic_open(&m->nic, m->dev, NULL, diag);

	if (r == 0)
		r = give_up_rights(diag);
	options.nic = m->nic;
	return r < 0 ? r : pl_reader_new(&m->reader, &options, diag);
}

/* ---- for the lookup ---- */

static int complain(int error, const struct pl_diag *diag)
{
	if (diag->text[0] != '\0')
		pl_complain_diag(diag);
	else
		pl_complain("%s", strerror(-error));
	return pl_lookup_exit(error);
}

/* Checks that the epoch in the options is the present one, which a collector serves. */
static int check_epoch(const struct remote *m, unsigned int i)
{
	const struct pl_exchange *store = pl_reader_store(m->reader, i);
	uint64_t epoch = store->epoch;

	if (m->args->epoch != NULL && pl_parse_u64(m->args->epoch, &epoch) < 0)
		return pl_fail(PL_EXIT_USAGE, "--epoch needs a number");
	if (epoch == store->epoch)
		return 0;
	return pl_fail(PL_EXIT_NOTHING,
		"epoch %" PRIu64
		" cannot be read over the network: %s serves the present one, %" PRIu64
		"; earlier ones are in files of its machine (collect --keep-epochs)",
		epoch, m->uri.servers[i], store->epoch);
}

static int open_store(
	void *arg, unsigned int i, struct pl_store_source *ret, struct pl_store_params *ret_params)
{
	struct remote *m = arg;
	struct pl_diag diag = { .text = "" };
	int r = pl_reader_connect(m->reader, i, &diag);

	if (r < 0)
		return complain(r, &diag);
	r = check_epoch(m, i);
	if (r != 0)
		return r;
	pl_reader_source(m->reader, i, ret);
	*ret_params = pl_reader_store(m->reader, i)->store;
	return 0;
}

/* Checks that the epoch did not change; lists have no epochs. */
static int unchanged(void *arg, unsigned int i)
{
	const struct remote *m = arg;
	struct pl_diag diag = { .text = "" };
	int r;

	if (pl_reader_store(m->reader, i)->store.primitive == PL_APPEND)
		return 0;
	r = pl_reader_unchanged(m->reader, i, &diag);
	if (r == 1)
		return 0;
	if (r < 0)
		return complain(r, &diag);
	return pl_fail(PL_EXIT_FAILED, "%s: the answers may be of both; look the keys up again",
		diag.text);
}

int pl_region_lookup_remote(
	const char *uri, const struct pl_region_args *args, const char *const *keys, size_t n)
{
	struct remote m = { .args = args };
	struct pl_diag diag = { .text = "" };
	int r = pl_roce_uri_parse(&m.uri, uri, take_key, &m, &diag), code;

	if (r == 0)
		r = check_uri(&m, &diag);
	if (r == 0)
		r = open_reader(&m, &diag);
	if (r < 0) {
		code = complain(r, &diag);
	} else {
		const struct pl_lookup_at at = { .n = m.uri.n_servers,
			.every = args->all,
			.names = m.uri.servers,
			.remote = true,
			.open = open_store,
			.unchanged = unchanged,
			.arg = &m };

		code = pl_lookup_keys(&at, args, keys, n);
	}
	pl_reader_free(m.reader);
	pl_nic_close(m.nic);
	pl_roce_uri_done(&m.uri);
	return code;
}
