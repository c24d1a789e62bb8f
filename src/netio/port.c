/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of drivers, the choice among them by URI, and the checks that all of them share. */
#include "netio/port.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "netio/iface.h"
#include "netio/pcap_filter.h"

static const struct pl_port_driver *const drivers[] = {
	&pl_port_pcap, &pl_port_udp, &pl_port_packet, &pl_port_ioam6,
#if PL_HAVE_BPF
	&pl_port_afxdp
#endif
};

/* Drivers that other folders registered. */
static const struct pl_port_driver *more[PL_PORT_DRIVERS_MORE];
static size_t n_more;

#define N_OWN (sizeof(drivers) / sizeof(drivers[0]))

void pl_port_add(const struct pl_port_driver *driver)
{
	for (size_t i = 0; i < n_more; i++) {
		if (more[i] == driver)
			return;
	}
	assert(n_more < PL_PORT_DRIVERS_MORE);
	more[n_more++] = driver;
}

/* Returns the driver of "SCHEME:…"; NULL for a bare file name or an unknown scheme. */
static const struct pl_port_driver *driver_named(const char *uri)
{
	for (size_t i = 0; i < N_OWN + n_more; i++) {
		const struct pl_port_driver *d = i < N_OWN ? drivers[i] : more[i - N_OWN];
		const size_t len = strlen(d->scheme);

		if (strncmp(uri, d->scheme, len) == 0 && uri[len] == ':')
			return d;
	}
	return NULL;
}

/*
 * Finds the driver of "udp://REST" or "SCHEME:REST" and splits the rest. Any other text without
 * "://" is the name of a file.
 */
static int find_driver(const char *uri, const struct pl_port_driver **ret_driver,
	struct pl_uri *ret_uri, struct pl_diag *diag)
{
	const struct pl_port_driver *driver = driver_named(uri);
	const char *slashes = strstr(uri, "://"), *target = uri;

	if (driver != NULL) {
		target = uri + strlen(driver->scheme) + 1;
		if (driver == &pl_port_udp && strncmp(target, "//", 2) != 0) {
			pl_diag_set(diag, "'%s': write %s://%s", uri, driver->scheme,
				*target != '\0' ? target : "HOST:PORT");
			return -EINVAL;
		}
		/* "packet://eth0", a common mistake, is accepted too. */
		if (driver != &pl_port_pcap && strncmp(target, "//", 2) == 0)
			target += 2;
	}
	if (!PL_HAVE_BPF && strncmp(uri, "afxdp:", 6) == 0) {
		pl_diag_set(diag,
			"'%s': this pathline was built without AF_XDP (clang, bpftool or libbpf was "
			"missing); packet:IFACE needs none of them",
			uri);
		return -EINVAL;
	}
	if (driver == NULL && slashes != NULL && strcspn(uri, "/") == (size_t)(slashes - uri) + 1) {
		pl_diag_set(diag,
			"'%s': unknown kind of port '%.*s' (known: udp://HOST:PORT, afxdp:IFACE, "
			"packet:IFACE, ioam6:, pcap:FILE%s)",
			uri, (int)(slashes - uri), uri, n_more > 0 ? ", kafka://BROKER/TOPIC" : "");
		return -EINVAL;
	}
	if (driver == NULL)
		driver = &pl_port_pcap;
	if (*target == '\0' && driver != &pl_port_ioam6) {
		pl_diag_set(diag,
			driver == &pl_port_pcap  ? "'%s': no file name behind the colon"
			: driver == &pl_port_udp ? "'%s': no address; write udp://HOST:PORT"
			: (driver->can & PL_PORT_CAN_INTERFACE) == 0
				? "'%s': nothing behind the colon"
				: "'%s': no interface behind the colon",
			uri);
		return -EINVAL;
	}
	*ret_driver = driver;
	return pl_uri_split(ret_uri, target, driver->keys, diag);
}

/* Returns true when a driver's packets are frames, or may be. */
static bool has_frames(const struct pl_port_driver *driver)
{
	return driver != &pl_port_ioam6 && (driver->can & PL_PORT_CAN_DATAGRAMS) == 0;
}

static int make_filter(struct pl_pcap_filter **ret, const struct pl_port_driver *driver,
	const char *uri, const char *expression, struct pl_diag *diag)
{
	*ret = NULL;
	if (expression == NULL)
		return 0;
	if (!has_frames(driver))
		return pl_pcap_filter_refuse(uri, diag);
	return pl_pcap_filter_new(ret, expression, diag);
}

int pl_port_open(struct pl_port **ret_port, const char *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	static const struct pl_port_options defaults;
	const struct pl_port_driver *driver;
	struct pl_pcap_filter *filter = NULL;
	struct pl_port *port = NULL;
	struct pl_uri parts;
	int r;

	if (options == NULL)
		options = &defaults;
	assert(options->of == 0 || options->index < options->of);
	assert(options->with == NULL || options->with->mode == mode);
	assert(options->filter == NULL || mode == PL_PORT_RECV);
	r = find_driver(uri, &driver, &parts, diag);
	if (r == 0 && options->fd > 0 && driver != &pl_port_pcap && driver != &pl_port_udp) {
		pl_diag_set(diag, "'%s': a port of this kind cannot use an open descriptor", uri);
		r = -EINVAL;
	}
	if (r == 0)
		r = make_filter(&filter, driver, uri, options->filter, diag);
	if (r < 0) {
		if (options->fd > 0)
			close(options->fd);
		return r;
	}
	assert(options->with == NULL || options->with->driver == driver);
	r = driver->open(&port, &parts, mode, options, diag);
	if (r < 0) {
		pl_pcap_filter_free(filter);
		return r;
	}
	port->driver = driver;
	port->mode = mode;
	port->filter = filter;
	*ret_port = port;
	return 0;
}

int pl_port_uri_sockets(const char *uri, struct pl_diag *diag)
{
	const struct pl_port_driver *driver;
	struct pl_uri parts;
	int r;

	r = find_driver(uri, &driver, &parts, diag);
	if (r < 0)
		return r;
	return driver->check != NULL ? driver->check(&parts, diag) : 1;
}

int pl_port_uri_tap(const char *uri, struct pl_diag *diag)
{
	const struct pl_port_driver *driver;
	struct pl_filter_rules rules;
	struct pl_uri parts;
	int r = find_driver(uri, &driver, &parts, diag);

	if (r == 0 && (driver->can & PL_PORT_CAN_INTERFACE) != 0)
		r = pl_iface_tap_rules(&parts, &rules, diag);
	return r;
}

uint32_t pl_port_uri_can(const char *uri)
{
	const struct pl_port_driver *driver = driver_named(uri);

	if (!PL_HAVE_BPF && strncmp(uri, "afxdp:", 6) == 0)
		return PL_PORT_AFXDP_CAN;
	return driver != NULL ? driver->can : 0;
}

const char *pl_port_uri_scheme(const char *uri)
{
	const struct pl_port_driver *driver = driver_named(uri);

	return driver != NULL ? driver->scheme : NULL;
}

const char *pl_port_name(const struct pl_port *port)
{
	return port->name;
}

enum pl_clock_kind pl_port_clock(const struct pl_port *port)
{
	return port->clock;
}

uint16_t pl_port_local_port(const struct pl_port *port)
{
	return port->local_port;
}

int pl_port_fd(const struct pl_port *port)
{
	return port->fd;
}

static void give_back(struct pl_port *port, struct pl_batch *batch)
{
	batch->n = (uint32_t)port->lent;
	if (port->driver->release != NULL)
		port->driver->release(port, batch);
	port->lent = 0;
	batch->n = 0;
}

/* Applies the filter to the lent packets. Returns how many match; -EINVAL with diag or -ENOMEM when
 * it cannot be applied. */
static int filter_batch(struct pl_port *port, struct pl_batch *batch, struct pl_diag *diag)
{
	const int n = pl_pcap_filter_batch(port->filter, batch, (uint32_t)port->lent, diag);

	if (n >= 0)
		port->stats.not_matched += (uint64_t)(port->lent - n);
	if (n <= 0)
		give_back(port, batch);
	return n;
}

int pl_port_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	uint64_t bytes = 0;
	int n;

	assert(port->mode == PL_PORT_RECV && port->lent == 0);
	n = port->driver->recv(port, ret_batch, timeout_ms, diag);
	port->lent = n > 0 ? n : 0;
	if (n > 0 && port->filter != NULL)
		n = filter_batch(port, ret_batch, diag);
	if (n <= 0) {
		ret_batch->n = 0;
		return n;
	}
	assert(n <= PL_BATCH_MAX);
	for (int i = 0; i < n; i++)
		bytes += ret_batch->pkts[i].len;
	ret_batch->n = (uint32_t)n;
	port->stats.packets += (uint64_t)n;
	port->stats.bytes += bytes;
	return n;
}

void pl_port_release(struct pl_port *port, struct pl_batch *batch)
{
	assert(port->lent > 0);
	give_back(port, batch);
}

bool pl_port_sends(const struct pl_port *port, const char **ret_why)
{
	const bool sends = port->mode == PL_PORT_SEND || port->sends;

	if (!sends)
		*ret_why = port->driver->why_not != NULL ? port->driver->why_not(port)
							 : "this kind of port cannot";
	return sends;
}

int pl_port_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	int n;

	assert((port->mode == PL_PORT_SEND || port->sends) && batch->n <= PL_BATCH_MAX);
	if (batch->n == 0)
		return 0;
	n = port->driver->send(port, batch, diag);
	if (port->mode == PL_PORT_RECV)
		return n;
	for (int i = 0; i < n; i++)
		port->stats.bytes += batch->pkts[i].len;
	if (n > 0)
		port->stats.packets += (uint64_t)n;
	return n;
}

void pl_port_stats(struct pl_port *port, struct pl_port_stats *ret)
{
	if (port->driver->stats != NULL)
		port->driver->stats(port);
	*ret = port->stats;
}

uint32_t pl_port_floods(struct pl_port *port, struct pl_port_flood *ret, int *ret_error)
{
	*ret_error = 0;
	return port->driver->floods != NULL ? port->driver->floods(port, ret, ret_error) : 0;
}

unsigned int pl_port_lane_fds(const struct pl_port *port, int *ret, unsigned int max)
{
	return port->driver->lane_fds != NULL ? port->driver->lane_fds(port, ret, max) : 0;
}

void pl_port_flood_text(char *dst, size_t cap, const struct pl_port_flood *flood)
{
	char text[PL_ADDR_TEXT_MAX];

	pl_format_addr(text, &flood->who.addr);
	if (flood->who.bits == 128)
		snprintf(dst, cap, "%s", text);
	else
		snprintf(dst, cap, "%s/%u", text, flood->who.bits);
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_port_stats, __VA_ARGS__)
#include "netio/port_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_port_stats_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

void pl_port_stats_add(struct pl_port_stats *into, const struct pl_port_stats *from)
{
	uint64_t a = into->rcvbuf_bytes, b = from->rcvbuf_bytes;

	pl_stats_add(&pl_port_stats_list, into, from);
	into->rcvbuf_bytes = a == 0 || (b != 0 && b < a) ? b : a;
}

int pl_port_close(struct pl_port *port)
{
	if (port == NULL)
		return 0;
	pl_pcap_filter_free(port->filter);
	return port->driver->close(port);
}
