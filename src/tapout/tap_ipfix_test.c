/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of flows as IPFIX over UDP: when messages and templates are sent. The test has the output's clock. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/test.h"
#include "tapout/tap_out.h"
#include "wire/cursor.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN  (1000 * SECOND)

enum { HEAD = 16, SET_HEAD = 4, TEMPLATES = 2, OPTIONS = 3, DATA = 256, ACCOUNT = 261 };

/* How many sets of each kind came. */
struct sets {
	unsigned int templates, options, flows, accounts;
};

static int collector;

static void add_sets(struct sets *ret, const uint8_t *message, size_t bytes)
{
	size_t at = HEAD;

	ok(bytes > HEAD && pl_be16(message) == 10 && pl_be16(message + 2) == bytes,
		"a message of IPFIX, %zu bytes", bytes);
	while (at + SET_HEAD <= bytes && pl_be16(message + at + 2) >= SET_HEAD) {
		const uint16_t id = pl_be16(message + at);

		ret->templates += id == TEMPLATES;
		ret->options += id == OPTIONS;
		ret->accounts += id == ACCOUNT;
		ret->flows += id >= DATA && id != ACCOUNT;
		at += pl_be16(message + at + 2);
	}
	eq(at, bytes, "of whole sets");
}

/* Adds those that came since the last look. On the loopback a datagram is there when it was sent. */
static void look(struct sets *ret)
{
	uint8_t message[65536];
	ssize_t bytes;

	while ((bytes = recv(collector, message, sizeof(message), MSG_DONTWAIT)) > 0)
		add_sets(ret, message, (size_t)bytes);
}

static struct pl_tap_out *open_out(void)
{
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_FLOW288 };
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(at);
	struct pl_diag diag = { .text = "" };
	struct pl_tap_out *ret = NULL;
	char uri[64];

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	collector = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (collector < 0 || bind(collector, (struct sockaddr *)&at, bytes) < 0 ||
		getsockname(collector, (struct sockaddr *)&at, &bytes) < 0)
		abort();
	snprintf(uri, sizeof(uri), "ipfix://127.0.0.1:%u", ntohs(at.sin_port));
	if (!ok(pl_tap_out_open(&ret, uri, &settings, &diag) == 0, "opens: %s", diag.text))
		exit(1);
	return ret;
}

static void put(struct pl_tap_out *out)
{
	const struct pl_flow288 flow = { .first_ts = BEGIN,
		.last_ts = BEGIN + SECOND,
		.proto = 17,
		.pkts_fwd = 1,
		.bytes_fwd = 60 };

	out->driver->put(out, &flow, 1);
}

/* Sets that come in the turn at that second. */
static struct sets turned(struct pl_tap_out *out, uint64_t seconds)
{
	struct sets ret = { 0 };

	(void)out->driver->turn(out, BEGIN + seconds * SECOND);
	look(&ret);
	return ret;
}

static void no_templates(const struct sets *s, const char *what)
{
	eq(s->templates + s->options, 0, "%s: no templates", what);
}

static void with_templates(const struct sets *s, const char *what)
{
	ok(s->templates > 0 && s->options > 0 && s->accounts == 1, "%s: templates and the account",
		what);
}

/* RFC 7011 8.1: over UDP templates are sent again, so that a collector that begins later reads the flows. */
static void test_templates(void)
{
	struct pl_tap_out *out = open_out();
	struct sets s;

	put(out);
	s = turned(out, 0);
	eq(s.flows, 0, "a flow waits for more");
	(void)out->driver->turn(out, BEGIN + SECOND);
	look(&s);
	with_templates(&s, "at the begin");
	eq(s.flows, 1, "a second later the flow comes");
	put(out);
	s = turned(out, 30);
	eq(s.flows, 0, "the next one waits as long");
	s = turned(out, 31);
	eq(s.flows, 1, "and comes");
	no_templates(&s, "within a minute");
	s = turned(out, 59);
	eq(s.flows + s.accounts, 0, "nothing waits");
	no_templates(&s, "until a minute is over");
	s = turned(out, 60);
	with_templates(&s, "a minute after the first turn");
	s = turned(out, 119);
	no_templates(&s, "until another one is over");
	put(out);
	s = turned(out, 120);
	with_templates(&s, "then again");
	eq(s.flows, 1, "behind the flow that waited");
	out->driver->finish(out);
	eq(out->driver->lost(out), 0, "no flow was lost");
	pl_tap_out_close(out);
	close(collector);
}

int main(void)
{
	test_templates();
	return pl_test_done();
}
