/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries IPFIX messages to a collector. */
#include "export/ipfix_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "netio/port.h"
#include "netio/tcp.h"
#include "netio/udp_address.h"

#define RETRY_NS     UINT64_C(1000000000)   /* pause between attempts to connect */
#define CONNECT_NS   UINT64_C(10000000000)  /* timeout of one attempt */
#define REFUSED_NS   UINT64_C(120000000000) /* a refusal is reported for this time */
#define WATCH_S      60                     /* idle seconds until a lost collector is noticed */
#define PORT_DEFAULT ":4739"
#define REVERSE_PEN  29305u

uint32_t pl_ipfix_now_s(void)
{
	return (uint32_t)(pl_clock_real_ns() / 1000000000);
}

void pl_ipfix_amount_add(struct pl_ipfix_amount *to, const struct pl_ipfix_amount *more)
{
	to->entries += more->entries;
	to->sum.records += more->sum.records;
	to->sum.packets += more->sum.packets;
	to->sum.bytes += more->sum.bytes;
}

static void say_trouble(struct pl_ipfix_link *l, const char *words)
{
	l->news = l->news || strcmp(l->trouble, words) != 0;
	snprintf(l->trouble, sizeof(l->trouble), "%s", words);
}

/* ---- UDP ---- */

static void send_datagram(struct pl_ipfix_link *l, const uint8_t *message, uint32_t bytes,
	const struct pl_ipfix_amount *carries)
{
	static _Thread_local struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = message, .len = bytes, .wire_len = bytes, .link = PL_LINK_UDP
	};
	if (pl_port_send(l->port, &batch, NULL) == 1) {
		l->messages++;
		l->bytes += bytes;
		pl_ipfix_amount_add(&l->sent, carries);
	} else {
		pl_ipfix_amount_add(&l->failed, carries);
	}
}

/* UDP: notices that the host refused earlier messages, which not all hosts tell. */
static void look_at_refusals(struct pl_ipfix_link *l, uint64_t now_ns)
{
	struct pl_port_stats port;

	pl_port_stats(l->port, &port);
	if (port.errors > l->refused) {
		say_trouble(l, "its host refuses messages: nothing listens at the port");
		l->refused_ns = now_ns;
	} else if (l->trouble[0] != '\0' && now_ns - l->refused_ns >= REFUSED_NS) {
		l->trouble[0] = '\0';
	}
	l->refused = port.errors;
}

/* ---- TCP ---- */

static void forget_unsent(struct pl_ipfix_link *l)
{
	l->in_unsent = (struct pl_ipfix_amount){ 0 };
	l->unsent_messages = 0;
	pl_buf_reset(&l->unsent);
	l->taken = 0;
}

/* Drops the connection: entries in messages already sent may be lost, too. */
void pl_ipfix_link_drop(struct pl_ipfix_link *l, const char *words, uint64_t now_ns)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->connected = l->began = false;
	l->next_ns = now_ns + RETRY_NS;
	pl_ipfix_amount_add(&l->failed, &l->in_unsent);
	forget_unsent(l);
	say_trouble(l, words);
}

/* Passes unsent messages to the kernel, as far as it takes them. */
static void push(struct pl_ipfix_link *l, uint64_t now_ns)
{
	while (l->connected && l->taken < l->unsent.len) {
		const ssize_t n = send(l->fd, l->unsent.data + l->taken, l->unsent.len - l->taken,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			pl_ipfix_link_drop(l, strerror(errno), now_ns);
			return;
		}
		l->taken += (size_t)n;
		l->bytes += (uint64_t)n;
	}
	if (l->unsent.len == 0 || l->taken < l->unsent.len)
		return;
	l->messages += l->unsent_messages;
	pl_ipfix_amount_add(&l->sent, &l->in_unsent);
	forget_unsent(l);
}

static void connect_to(struct pl_ipfix_link *l, uint64_t now_ns)
{
	struct pl_diag diag = { .text = "" };

	l->next_ns = now_ns + CONNECT_NS;
	l->fd = pl_tcp_connect(&l->addr, l->at, NULL, &diag);
	if (l->fd < 0)
		pl_ipfix_link_drop(l, diag.text, now_ns);
}

/* Ends an attempt to connect that succeeded, failed or took too long. */
static void finish_connecting(struct pl_ipfix_link *l, uint64_t now_ns)
{
	struct pollfd p = { .fd = l->fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&p, 1, 0) == 0) {
		if (now_ns >= l->next_ns)
			pl_ipfix_link_drop(l, strerror(ETIMEDOUT), now_ns);
		return;
	}
	if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error != 0) {
		pl_ipfix_link_drop(l, strerror(error), now_ns);
		return;
	}
	pl_tcp_watch(l->fd, WATCH_S);
	l->connected = l->began = true;
	l->connections++;
	l->news = l->news || l->trouble[0] != '\0';
	l->trouble[0] = '\0';
}

/* Notices a closed connection: a collector sends nothing, so 0 bytes mean its end. */
static void look_at_peer(struct pl_ipfix_link *l, uint64_t now_ns)
{
	uint8_t bytes[256];
	const ssize_t n = recv(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n == 0)
		pl_ipfix_link_drop(l, "the collector closed the connection", now_ns);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		pl_ipfix_link_drop(l, strerror(errno), now_ns);
}

/* ---- both transports ---- */

void pl_ipfix_link_send(struct pl_ipfix_link *l, const uint8_t *message, uint32_t bytes,
	const struct pl_ipfix_amount *carries, uint64_t now_ns)
{
	if (l->port != NULL) {
		send_datagram(l, message, bytes, carries);
		return;
	}
	if (!l->connected) {
		pl_ipfix_amount_add(&l->failed, carries);
		return;
	}
	pl_buf_add(&l->unsent, message, bytes);
	if (l->unsent.failed) {
		/* There was no memory; the waiting messages are complete. */
		l->unsent.failed = false;
		pl_ipfix_amount_add(&l->failed, carries);
		return;
	}
	pl_ipfix_amount_add(&l->in_unsent, carries);
	l->unsent_messages++;
	push(l, now_ns);
}

bool pl_ipfix_link_ready(const struct pl_ipfix_link *l)
{
	return l->port != NULL || (l->connected && !l->began && l->unsent.len == 0);
}

bool pl_ipfix_link_turn(struct pl_ipfix_link *l, uint64_t now_ns)
{
	bool began;

	if (l->port != NULL) {
		look_at_refusals(l, now_ns);
		return false;
	}
	if (l->fd < 0 && now_ns >= l->next_ns)
		connect_to(l, now_ns);
	if (l->fd >= 0 && !l->connected)
		finish_connecting(l, now_ns);
	if (l->connected)
		look_at_peer(l, now_ns);
	push(l, now_ns);
	began = l->began;
	l->began = false;
	return began;
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
	return pl_diag_fail(diag, -EINVAL, "'time=%s' in the URI: ms, us or ns", text);
}

static int read_transport(const char *text, bool *ret_tcp, struct pl_diag *diag)
{
	*ret_tcp = text != NULL && strcmp(text, "tcp") == 0;
	if (text == NULL || *ret_tcp || strcmp(text, "udp") == 0)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "'transport=%s' in the URI: udp or tcp", text);
}

/* Turns "//HOST[:PORT]" into "HOST:PORT". */
static int read_endpoint(const char *target, char *dst, size_t cap, struct pl_diag *diag)
{
	const char *host = target + 2, *colon;
	struct pl_diag why = { .text = "" };
	int n, r;

	if (strncmp(target, "//", 2) != 0 || *host == '\0' || (*host == ':' && host[1] != ':') ||
		strchr(host, '/') != NULL)
		return pl_diag_fail(diag, -EINVAL, "a collector of IPFIX is ipfix://HOST[:PORT]");
	if (*host != '[' && strchr(host, ':') != strrchr(host, ':'))
		return pl_diag_fail(
			diag, -EINVAL, "an IPv6 address stands in brackets: ipfix://[%s]", host);
	colon = strrchr(host, ':');
	/* The colons in "[::1]" do not precede a port. */
	if (colon != NULL && strchr(colon, ']') != NULL)
		colon = NULL;
	if (colon != NULL && strcmp(colon, ":0") == 0)
		return pl_diag_fail(diag, -EINVAL, "ipfix: a collector has a port, which 0 is not");
	n = snprintf(dst, cap, "%s%s", host, colon != NULL ? "" : PORT_DEFAULT);
	if (n < 0 || (size_t)n >= cap)
		return pl_diag_fail(diag, -EINVAL, "ipfix: the name of the host is too long");
	r = pl_udp_resolve(dst, NULL, &why);
	if (r < 0)
		pl_diag_set(diag, "ipfix: %s", why.text);
	return r;
}

int pl_ipfix_target_read(
	struct pl_ipfix_target *ret, const struct pl_uri *uri, struct pl_diag *diag)
{
	int r = read_endpoint(uri->target, ret->endpoint, sizeof(ret->endpoint), diag);

	ret->time = PL_IPFIX_MILLISECONDS;
	ret->pen = 0;
	if (r == 0)
		r = read_transport(pl_uri_get(uri, "transport"), &ret->tcp, diag);
	if (r == 0)
		r = read_time(pl_uri_get(uri, "time"), &ret->time, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "pen", 1, UINT32_MAX, &ret->pen, diag);
	/* This PEN marks reverse elements (RFC 5103, 6.1) and is reserved by libfixbuf. */
	if (r == 0 && ret->pen == REVERSE_PEN)
		r = pl_diag_fail(diag, -EINVAL,
			"'pen=29305' in the URI: this number is that of reverse elements (RFC 5103); give the number of your enterprise");
	return r;
}

/* Puts the scheme ipfix before the error's text; that of a port begins with its own scheme. */
static void say_why(struct pl_diag *diag, const char *endpoint, const struct pl_diag *why)
{
	static const char scheme[] = "udp://";
	const size_t n = strlen(scheme);

	if (strncmp(why->text, scheme, n) == 0)
		pl_diag_set(diag, "ipfix://%s", why->text + n);
	else
		pl_diag_set(diag, "ipfix://%s: %s", endpoint, why->text);
}

static int open_port(struct pl_ipfix_link *l, const char *endpoint, struct pl_diag *diag)
{
	char uri[PL_URI_TEXT_MAX + 8];

	snprintf(uri, sizeof(uri), "udp://%s", endpoint);
	return pl_port_open(&l->port, uri, PL_PORT_SEND, NULL, diag);
}

int pl_ipfix_link_open(
	struct pl_ipfix_link *l, const struct pl_ipfix_target *target, struct pl_diag *diag)
{
	struct pl_sockaddr address;
	struct pl_diag why = { .text = "" };
	int r;

	*l = (struct pl_ipfix_link){ .fd = -1 };
	pl_buf_init(&l->unsent);
	if (!target->tcp) {
		r = open_port(l, target->endpoint, &why);
	} else {
		r = pl_udp_resolve(target->endpoint, &address, &why);
		if (r == 0)
			l->addr = pl_sockaddr_get(&address.sa, &l->at);
	}
	if (r < 0)
		say_why(diag, target->endpoint, &why);
	return r;
}

void pl_ipfix_link_close(struct pl_ipfix_link *l)
{
	(void)pl_port_close(l->port);
	if (l->fd >= 0)
		close(l->fd);
	pl_buf_done(&l->unsent);
}
