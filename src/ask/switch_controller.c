/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the addresses that collectors send into a table of a switch. */
#include "ask/switch_controller.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ask/switch_client.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/json.h"
#include "base/num.h"
#include "netio/tcp.h"
#include "rdma/exchange.h"
#include "runtime/signals.h"

#define PATIENCE_NS UINT64_C(10000000000)
#define BACKLOG     8

/* ---- the entry ---- */

static const char *const names[] = { "{va}", "{rkey}", "{qpn}" };

static void put_entry(const char *at, const struct pl_exchange *x, struct pl_buf *out)
{
	const uint64_t values[] = { x->va, x->key, x->qpn };

	while (*at != '\0') {
		size_t i = 0;

		while (i < 3 && strncmp(at, names[i], strlen(names[i])) != 0)
			i++;
		if (i == 3) {
			pl_buf_chr(out, *at++);
			continue;
		}
		pl_buf_u64(out, values[i]);
		at += strlen(names[i]);
	}
}

static void put_request(
	const struct pl_switch_controller *c, const struct pl_exchange *x, struct pl_buf *out)
{
	struct pl_buf entry = { 0 };
	struct pl_json j;

	put_entry(c->entry, x, &entry);
	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "do", "change");
	pl_json_key(&j, "changes");
	pl_json_array(&j);
	pl_json_object(&j);
	pl_json_text(&j, "kind", "set");
	pl_json_text(&j, "table", c->table);
	pl_json_key(&j, "entry");
	pl_json_strn(&j, entry.data, entry.len);
	pl_json_object_end(&j);
	pl_json_array_end(&j);
	pl_json_object_end(&j);
	out->failed |= entry.failed;
	pl_buf_done(&entry);
}

/* Returns 0 when the switch has taken the entry, or -EINVAL with diag. */
static int read_answer(const char *text, struct pl_diag *diag)
{
	json_t *x = json_loads(text, 0, NULL);
	const char *why = json_string_value(json_object_get(x, "error"));
	int r = json_is_true(json_object_get(x, "ok")) ? 0 : -EINVAL;

	if (r < 0)
		pl_diag_set(diag, "the switch refuses the entry: %s",
			why != NULL ? why : "it does not say why");
	json_decref(x);
	return r;
}

static int set_entry(
	const struct pl_switch_controller *c, const struct pl_exchange *x, struct pl_diag *diag)
{
	struct pl_buf request = { 0 }, answer = { 0 };
	int r;

	put_request(c, x, &request);
	r = request.failed ? -ENOMEM : pl_switch_ask(c->socket, &request, &answer, diag);
	if (r == 0)
		r = read_answer(answer.data, diag);
	pl_buf_done(&request);
	pl_buf_done(&answer);
	return r;
}

/* ---- a collector ---- */

/* Returns 0 when there may be something to read, -ETIMEDOUT, or -EINTR when a signal ends the run. */
static int wait_for(int fd, int signals, uint64_t until_ns)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN } };
	const uint64_t now_ns = pl_clock_mono_ns();
	const int ms = until_ns == UINT64_MAX ? -1
		       : now_ns >= until_ns   ? 0
					      : (int)((until_ns - now_ns) / 1000000) + 1;
	int n = poll(fds, 2, ms);

	if (n > 0 && fds[1].revents != 0)
		return -EINTR;
	return n > 0 || (n < 0 && errno == EINTR) ? 0 : -ETIMEDOUT;
}

/* Reads the 34 bytes of a collector. */
static int hear(int fd, int signals, uint8_t *ret, struct pl_exchange *ret_x)
{
	const uint64_t until_ns = pl_clock_mono_ns() + PATIENCE_NS;
	size_t len = 0;
	int r;

	while (len < PL_EXCHANGE_COMPACT_BYTES) {
		ssize_t n = recv(fd, ret + len, PL_EXCHANGE_COMPACT_BYTES - len, MSG_DONTWAIT);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
		if (len == PL_EXCHANGE_COMPACT_BYTES)
			break;
		r = wait_for(fd, signals, until_ns);
		if (r < 0)
			return r;
	}
	return pl_exchange_get_compact(ret_x, pl_cursor(ret, len)) == 1 ? 0 : -EBADMSG;
}

static int serve(const struct pl_switch_controller *c, int fd, int signals, const char *who)
{
	uint8_t bytes[PL_EXCHANGE_COMPACT_BYTES];
	struct pl_diag diag = { .text = "" };
	struct pl_exchange x = { .va = 0 };
	int r = hear(fd, signals, bytes, &x);

	if (r == 0)
		r = set_entry(c, &x, &diag);
	/* A new socket has room for so few bytes. */
	if (r == 0 && send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		r = -EPIPE;
	if (r == 0)
		pl_complain("%s: va %" PRIu64 " rkey %" PRIu32 " qpn %" PRIu32
			    ": the switch writes there",
			who, x.va, x.key, x.qpn);
	else if (r != -EINTR)
		pl_complain("%s: %s", who, diag.text[0] != '\0' ? diag.text : strerrordesc_np(-r));
	return r;
}

/* ---- all of them ---- */

static int check_entry(const struct pl_switch_controller *c, struct pl_diag *diag)
{
	for (size_t i = 0; i < 3; i++) {
		if (strstr(c->entry, names[i]) != NULL)
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"the entry has no %s: write roce_write … va={va} rkey={rkey} qpn={qpn}",
			names[i]);
	}
	return 0;
}

int pl_switch_controller_run(const struct pl_switch_controller *c, struct pl_diag *diag)
{
	char where[PL_TCP_TEXT_MAX], who[PL_ADDR_TEXT_MAX];
	int r = check_entry(c, diag), listener = -1, signals = -1;

	if (r == 0)
		listener = r = pl_tcp_listen(c->listen, BACKLOG, NULL, where, diag);
	if (listener >= 0)
		signals = r = pl_signals_fd((const int[]){ 0 }, SFD_NONBLOCK);
	if (signals >= 0)
		pl_complain("controller of the switch at %s listens on %s", c->socket, where);
	while (signals >= 0 && (r = wait_for(listener, signals, UINT64_MAX)) == 0) {
		struct pl_addr peer;
		int fd = pl_tcp_accept(listener, &peer);

		/* Without free descriptors the connection waits to be accepted. */
		if (fd < 0 && fd != -EAGAIN)
			(void)poll(NULL, 0, 100);
		if (fd < 0)
			continue;
		pl_format_addr(who, &peer);
		r = serve(c, fd, signals, who);
		close(fd);
		if (r == -EINTR)
			break;
	}
	if (listener >= 0)
		close(listener);
	if (signals >= 0)
		close(signals);
	return r == -EINTR ? 0 : r;
}
