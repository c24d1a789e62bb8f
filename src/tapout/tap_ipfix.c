/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of flows as IPFIX: a datagram for each message, or a connection that is made again when
 * it breaks. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "ipfix/writer.h"
#include "netio/port.h"
#include "netio/tcp.h"
#include "netio/udp_address.h"
#include "netio/uri.h"
#include "runtime/say.h"
#include "tapout/tap_out.h"

#define WAIT_NS      UINT64_C(1000000000)  /* that a flow waits for its message to be full */
#define REPEAT_NS    UINT64_C(60000000000) /* between templates, or accounts */
#define RETRY_NS     UINT64_C(1000000000)  /* between attempts to connect */
#define CONNECT_NS   UINT64_C(10000000000) /* that one may take */
#define REFUSED_NS   (2 * REPEAT_NS)       /* that a refusal is told: templates are sent within */
#define TURN_NS      UINT64_C(10000000)    /* while the collector takes nothing */
#define CLOSE_MS     10000                 /* at the end, without anything being taken */
#define WATCH_S      60                    /* after which a collector that is gone is found out */
#define WAITING_MAX  65536u                /* flows that wait for a connection: 8 MiB */
#define PORT_DEFAULT ":4739"

struct ipfix_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_ipfix_stats.def"
#undef PL_STAT
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct ipfix_stats, __VA_ARGS__)
#include "tapout/tap_ipfix_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

/* Of some flows. */
struct amount {
	uint64_t flows;
	struct pl_ipfix_sum sum;
};

struct config {
	char endpoint[PL_URI_TEXT_MAX]; /* "HOST:PORT" */
	bool tcp, biflow;
	enum pl_ipfix_time time;
	uint64_t pen;
};

struct ipfix_out {
	struct pl_tap_out out; /* first */
	struct pl_ipfix *writer;
	struct pl_ipfix_sum lost; /* since the start */
	struct amount making;     /* in the message that is being made */
	uint64_t flush_ns;        /* UDP: when that is sent; 0: nothing waits */
	uint64_t repeat_ns;       /* when templates or account are due */
	struct ipfix_stats stats;
	uint64_t refused_ns;  /* UDP: when a message was refused last */
	struct pl_port *port; /* UDP; NULL: TCP, and what follows */
	struct pl_addr addr;
	uint16_t at;
	int fd;           /* -1: none */
	bool connected;   /* the handshake is over */
	uint64_t next_ns; /* without a connection: when to try; while one is made: until when */
	struct pl_flow288 *ring;
	uint32_t first, n;
	struct pl_buf unsent; /* messages, of which this many bytes were taken */
	size_t taken;
	struct amount in_unsent;
	uint32_t unsent_messages;
	char trouble[128];
};

#define REVERSE_PEN 29305u

static const char *const keys[] = { "transport", "biflow", "time", "pen", NULL };

static uint32_t now_s(void)
{
	return (uint32_t)(pl_clock_real_ns() / 1000000000);
}

static void add(struct pl_ipfix_sum *to, const struct pl_ipfix_sum *more)
{
	to->records += more->records;
	to->packets += more->packets;
	to->bytes += more->bytes;
}

static void lose(struct ipfix_out *self, const struct pl_flow288 *flow)
{
	const struct pl_ipfix_sum sum = pl_ipfix_of(self->writer, flow);

	self->stats.dropped++;
	add(&self->lost, &sum);
}

/* ---- UDP ---- */

static void send_datagram(struct ipfix_out *self, const uint8_t *message, uint32_t bytes)
{
	static _Thread_local struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = message, .len = bytes, .wire_len = bytes, .link = PL_LINK_UDP
	};
	if (pl_port_send(self->port, &batch, NULL) == 1) {
		self->stats.messages++;
		self->stats.sent += self->making.flows;
	} else {
		self->stats.failed += self->making.flows;
		add(&self->lost, &self->making.sum);
	}
}

/* ---- TCP ---- */

static void say_trouble(struct ipfix_out *self, const char *words)
{
	if (strcmp(self->trouble, words) != 0)
		pl_say("%s: %s", self->out.name, words);
	snprintf(self->trouble, sizeof(self->trouble), "%s", words);
}

/* What was in messages may not have arrived. */
static void disconnect(struct ipfix_out *self, const char *words, uint64_t now_ns)
{
	if (self->fd >= 0)
		close(self->fd);
	self->fd = -1;
	self->connected = false;
	self->next_ns = now_ns + RETRY_NS;
	self->stats.failed += self->in_unsent.flows;
	add(&self->lost, &self->in_unsent.sum);
	self->in_unsent = (struct amount){ 0 };
	self->unsent_messages = 0;
	pl_buf_reset(&self->unsent);
	self->taken = 0;
	say_trouble(self, words);
}

/* Gives the kernel what it takes of the messages. */
static void push(struct ipfix_out *self, uint64_t now_ns)
{
	while (self->connected && self->taken < self->unsent.len) {
		const ssize_t n = send(self->fd, self->unsent.data + self->taken,
			self->unsent.len - self->taken, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0)
			disconnect(self, strerror(errno), now_ns);
		else
			self->taken += (size_t)n;
	}
	if (self->unsent.len == 0 || self->taken < self->unsent.len)
		return;
	self->stats.messages += self->unsent_messages;
	self->stats.sent += self->in_unsent.flows;
	self->in_unsent = (struct amount){ 0 };
	self->unsent_messages = 0;
	pl_buf_reset(&self->unsent);
	self->taken = 0;
}

static void connect_to(struct ipfix_out *self, uint64_t now_ns)
{
	struct pl_diag diag = { .text = "" };

	self->next_ns = now_ns + CONNECT_NS;
	self->fd = pl_tcp_connect(&self->addr, self->at, NULL, &diag);
	if (self->fd < 0)
		disconnect(self, diag.text, now_ns);
}

/* Whether a connection that was begun is there. */
static void finish_connecting(struct ipfix_out *self, uint64_t now_ns)
{
	struct pollfd p = { .fd = self->fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&p, 1, 0) == 0) {
		if (now_ns >= self->next_ns)
			disconnect(self, strerror(ETIMEDOUT), now_ns);
		return;
	}
	if (getsockopt(self->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error != 0) {
		disconnect(self, strerror(error), now_ns);
		return;
	}
	pl_tcp_watch(self->fd, WATCH_S);
	self->connected = true;
	self->stats.connections++;
	if (self->trouble[0] != '\0')
		pl_say("%s: connected", self->out.name);
	self->trouble[0] = '\0';
	self->repeat_ns = now_ns + REPEAT_NS;
	pl_ipfix_begin(self->writer, &self->lost, now_s());
	pl_ipfix_flush(self->writer, now_s());
}

/* A collector says nothing: when something can be read, it has closed the connection. */
static void look_at_peer(struct ipfix_out *self, uint64_t now_ns)
{
	uint8_t bytes[256];
	const ssize_t n = recv(self->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n == 0)
		disconnect(self, "the collector closed the connection", now_ns);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		disconnect(self, strerror(errno), now_ns);
}

/* ---- messages ---- */

static void on_message(void *arg, const uint8_t *message, uint32_t bytes, uint32_t flows)
{
	struct ipfix_out *self = arg;

	(void)flows;
	if (self->port != NULL) {
		send_datagram(self, message, bytes);
	} else {
		pl_buf_add(&self->unsent, message, bytes);
		self->in_unsent.flows += self->making.flows;
		add(&self->in_unsent.sum, &self->making.sum);
		self->unsent_messages++;
	}
	self->making = (struct amount){ 0 };
}

static void make(struct ipfix_out *self, const struct pl_flow288 *flow, uint32_t at_s)
{
	const struct pl_ipfix_sum sum = pl_ipfix_of(self->writer, flow);

	/* The message before is sent first, when it has no room. */
	pl_ipfix_flow(self->writer, flow, at_s);
	self->making.flows++;
	add(&self->making.sum, &sum);
}

/* Makes messages of what waits, as long as the connection takes them. */
static void drain(struct ipfix_out *self, uint64_t now_ns)
{
	const uint32_t at_s = now_s();

	push(self, now_ns);
	while (self->connected && self->unsent.len == 0 && self->n > 0) {
		make(self, &self->ring[self->first], at_s);
		self->first = (self->first + 1) % WAITING_MAX;
		self->n--;
		/* What waits in the ring outlives the connection; what is in a message does not. */
		if (self->n == 0)
			pl_ipfix_flush(self->writer, at_s);
		push(self, now_ns);
	}
}

/* ---- opening ---- */

static int read_time(const char *text, enum pl_ipfix_time *ret, struct pl_diag *diag)
{
	static const char *const words[] = { "ms", "us", "ns" };

	for (unsigned int i = 0; text != NULL && i < 3; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = (enum pl_ipfix_time)i;
			return 0;
		}
	}
	if (text == NULL)
		return 0;
	pl_diag_set(diag, "'time=%s' in the URI: ms, us or ns", text);
	return -EINVAL;
}

static int read_transport(const char *text, bool *ret_tcp, struct pl_diag *diag)
{
	*ret_tcp = text != NULL && strcmp(text, "tcp") == 0;
	if (text == NULL || *ret_tcp || strcmp(text, "udp") == 0)
		return 0;
	pl_diag_set(diag, "'transport=%s' in the URI: udp or tcp", text);
	return -EINVAL;
}

/* "//HOST[:PORT]" into "HOST:PORT". */
static int read_endpoint(const char *target, char *dst, size_t cap, struct pl_diag *diag)
{
	const char *host = target + 2, *colon;
	int n;

	if (strncmp(target, "//", 2) != 0 || *host == '\0' || strchr(host, '/') != NULL) {
		pl_diag_set(diag, "a collector of IPFIX is ipfix://HOST[:PORT]");
		return -EINVAL;
	}
	if (*host != '[' && strchr(host, ':') != strrchr(host, ':')) {
		pl_diag_set(diag, "an IPv6 address stands in brackets: ipfix://[%s]", host);
		return -EINVAL;
	}
	colon = strrchr(host, ':');
	/* The colons of "[::1]" are none before a port. */
	if (colon != NULL && strchr(colon, ']') != NULL)
		colon = NULL;
	n = snprintf(dst, cap, "%s%s", host, colon != NULL ? "" : PORT_DEFAULT);
	if (n < 0 || (size_t)n >= cap) {
		pl_diag_set(diag, "ipfix: the name of the host is too long");
		return -EINVAL;
	}
	return pl_udp_resolve(dst, NULL, diag);
}

static int configure(struct config *ret, const char *target,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_uri uri;
	int r = pl_uri_split(&uri, target, keys, diag);

	*ret = (struct config){ .time = PL_IPFIX_MILLISECONDS };
	if (r == 0)
		r = read_endpoint(uri.target, ret->endpoint, sizeof(ret->endpoint), diag);
	if (r == 0)
		r = read_transport(pl_uri_get(&uri, "transport"), &ret->tcp, diag);
	if (r == 0)
		r = pl_uri_get_bool(&uri, "biflow", &ret->biflow, diag);
	if (r == 0)
		r = read_time(pl_uri_get(&uri, "time"), &ret->time, diag);
	if (r == 0)
		r = pl_uri_get_size(&uri, "pen", 1, UINT32_MAX, &ret->pen, diag);
	/* RFC 5103, 6.1: that of reverse elements, which libfixbuf keeps to itself. */
	if (r == 0 && ret->pen == REVERSE_PEN) {
		pl_diag_set(diag,
			"'pen=29305' in the URI: this number is that of reverse elements (RFC 5103); give the number of your enterprise");
		r = -EINVAL;
	}
	if (r == 0 && settings->kind != PL_FLAT_FLOW288) {
		pl_diag_set(diag,
			"ipfix: flows are exported, not %s (tap --flows; in the configuration records: flows)",
			pl_flat(settings->kind)->stream);
		r = -EINVAL;
	}
	return r;
}

static int ipfix_check(
	const char *target, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct config c;

	return configure(&c, target, settings, diag);
}

static void ipfix_close(struct pl_tap_out *out)
{
	struct ipfix_out *self = (struct ipfix_out *)out;

	pl_ipfix_free(self->writer);
	(void)pl_port_close(self->port);
	if (self->fd >= 0)
		close(self->fd);
	pl_buf_done(&self->unsent);
	free(self->ring);
	free(self);
}

static int open_transport(struct ipfix_out *self, const struct config *c, struct pl_diag *diag)
{
	char uri[PL_URI_TEXT_MAX + 8];
	struct pl_udp_address address;
	int r;

	if (!c->tcp) {
		snprintf(uri, sizeof(uri), "udp://%s", c->endpoint);
		r = pl_port_open(&self->port, uri, PL_PORT_SEND, NULL, diag);
		if (r == 0)
			pl_ipfix_begin(self->writer, &self->lost, now_s());
		return r;
	}
	self->ring = calloc(WAITING_MAX, sizeof(*self->ring));
	if (self->ring == NULL)
		return -ENOMEM;
	r = pl_udp_resolve(c->endpoint, &address, diag);
	if (r == 0)
		self->addr = pl_udp_address_get(&address.sa, &self->at);
	return r;
}

static int ipfix_open(struct pl_tap_out **ret, const char *target,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct ipfix_out *self = calloc(1, sizeof(*self));
	struct config c;
	int r = configure(&c, target, settings, diag);

	if (self != NULL && r == 0) {
		const struct pl_ipfix_options o = { .domain = settings->exporter,
			.biflow = c.biflow,
			.time = c.time,
			.pen = (uint32_t)c.pen,
			.send = on_message,
			.arg = self };

		self->fd = -1;
		pl_buf_init(&self->unsent);
		r = pl_ipfix_new(&self->writer, &o);
		if (r == 0)
			r = open_transport(self, &c, diag);
		if (r < 0)
			ipfix_close(&self->out);
	} else {
		free(self);
		r = r < 0 ? r : -ENOMEM;
	}
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	if (r == 0)
		*ret = &self->out;
	return r;
}

/* ---- running ---- */

static void ipfix_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	const struct pl_flow288 *flows = records;
	const uint32_t at_s = now_s();

	self->stats.records += n;
	for (uint32_t i = 0; i < n; i++) {
		if (self->port != NULL) {
			make(self, &flows[i], at_s);
		} else if (self->n < WAITING_MAX) {
			self->ring[(self->first + self->n++) % WAITING_MAX] = flows[i];
		} else {
			lose(self, &flows[i]);
		}
	}
}

static void turn_connection(struct ipfix_out *self, uint64_t now_ns)
{
	if (self->fd < 0 && now_ns >= self->next_ns)
		connect_to(self, now_ns);
	if (self->fd >= 0 && !self->connected)
		finish_connecting(self, now_ns);
	if (self->connected)
		look_at_peer(self, now_ns);
	drain(self, now_ns);
}

static void repeat(struct ipfix_out *self, uint64_t now_ns)
{
	self->repeat_ns = now_ns + REPEAT_NS;
	if (self->port != NULL)
		pl_ipfix_templates(self->writer, &self->lost, now_s());
	else if (self->connected)
		pl_ipfix_account(self->writer, &self->lost, now_s());
	pl_ipfix_flush(self->writer, now_s());
	push(self, now_ns);
}

/* A host without a collector says so, sometimes: what was sent before did not arrive. */
static void look_at_refusals(struct ipfix_out *self, uint64_t now_ns)
{
	struct pl_port_stats port;
	uint64_t refused;

	pl_port_stats(self->port, &port);
	refused = port.errors;
	if (refused > self->stats.refused) {
		say_trouble(self, "its host refuses messages: nothing listens at the port");
		self->refused_ns = now_ns;
	} else if (self->trouble[0] != '\0' && now_ns - self->refused_ns >= REFUSED_NS) {
		self->trouble[0] = '\0';
	}
	self->stats.refused = refused;
}

static uint64_t ipfix_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	struct ipfix_stats *s = &self->stats;
	uint64_t due;

	if (self->port == NULL)
		turn_connection(self, now_ns);
	else
		look_at_refusals(self, now_ns);
	if (self->repeat_ns == 0)
		self->repeat_ns = now_ns + REPEAT_NS;
	if (now_ns >= self->repeat_ns)
		repeat(self, now_ns);
	if (self->flush_ns != 0 && now_ns >= self->flush_ns) {
		pl_ipfix_flush(self->writer, now_s());
		self->flush_ns = 0;
	}
	if (self->flush_ns == 0 && pl_ipfix_waiting(self->writer) > 0)
		self->flush_ns = now_ns + WAIT_NS;
	s->waiting = self->n + self->making.flows + self->in_unsent.flows;
	s->mended = pl_ipfix_mended(self->writer);
	due = self->flush_ns != 0 && self->flush_ns < self->repeat_ns ? self->flush_ns
								      : self->repeat_ns;
	if (self->port == NULL && (self->unsent.len > 0 || self->n > 0 || !self->connected) &&
		due > now_ns + TURN_NS)
		due = now_ns + TURN_NS;
	return due;
}

/* Whether something more has left within the time that a collector has for it. */
static bool waits(struct ipfix_out *self)
{
	const uint64_t sent = self->stats.sent, from_ns = pl_clock_mono_ns();
	const struct timespec look = pl_clock_timespec(TURN_NS);

	while (pl_clock_mono_ns() - from_ns < CLOSE_MS * UINT64_C(1000000)) {
		turn_connection(self, pl_clock_mono_ns());
		if (self->stats.sent != sent || (self->n == 0 && self->unsent.len == 0))
			return true;
		nanosleep(&look, NULL);
	}
	return false;
}

static void ipfix_finish(struct pl_tap_out *out)
{
	struct ipfix_out *self = (struct ipfix_out *)out;
	bool going_on = true;

	pl_ipfix_flush(self->writer, now_s());
	if (self->port != NULL)
		look_at_refusals(self, pl_clock_mono_ns());
	while (self->port == NULL && going_on && (self->n > 0 || self->unsent.len > 0))
		going_on = waits(self);
	if (self->unsent.len > 0)
		disconnect(self, "the collector takes nothing", pl_clock_mono_ns());
	for (; self->n > 0; self->n--) {
		lose(self, &self->ring[self->first]);
		self->first = (self->first + 1) % WAITING_MAX;
	}
	self->stats.waiting = 0;
	self->stats.mended = pl_ipfix_mended(self->writer);
}

static uint64_t ipfix_lost(const struct pl_tap_out *out)
{
	const struct ipfix_stats *s = &((const struct ipfix_out *)out)->stats;

	return s->failed + s->dropped;
}

static void ipfix_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret)
{
	const struct ipfix_out *self = (const struct ipfix_out *)out;

	if (self->trouble[0] != '\0')
		pl_condition_add(ret, PL_CONDITION_FAULT, "output_failing", "tap %s: %s: %s", tap,
			self->out.name, self->trouble);
}

static const void *ipfix_counters(const struct pl_tap_out *out)
{
	return &((const struct ipfix_out *)out)->stats;
}

const struct pl_tap_out_driver pl_tap_out_ipfix = {
	.scheme = "ipfix",
	.check = ipfix_check,
	.open = ipfix_open,
	.put = ipfix_put,
	.turn = ipfix_turn,
	.finish = ipfix_finish,
	.lost = ipfix_lost,
	.conditions = ipfix_conditions,
	.numbers = { { &stats_list, ipfix_counters } },
	.close = ipfix_close,
};
