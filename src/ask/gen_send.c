/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends the packets of "pathline gen", each at its time. */
#include "ask/gen_send.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "netio/port.h"
#include "runtime/confine.h"
#include "runtime/signals.h"

#define SLEEP_MAX_NS UINT64_C(50000000)   /* longest sleep, so that a signal is noticed soon */
#define LAG_MAX_NS   UINT64_C(1000000000) /* when sending is later than this, it skips time */

static volatile sig_atomic_t stopped, asked;
static struct pl_confine confine;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		asked = 1;
	else
		stopped = 1;
}

void pl_gen_catch_signals(void)
{
	pl_signals_handle(on_signal, (const int[]){ SIGUSR1, 0 });
}

bool pl_gen_is_live(const char *uri)
{
	return (pl_port_uri_can(uri) & PL_PORT_CAN_SEND) != 0;
}

int pl_gen_open(struct pl_port **ret, const char *uri, const char *folder, struct pl_diag *diag)
{
	const struct pl_privilege_options options = { .user = NULL };
	struct pl_port_options port = { .rights = NULL };
	int r = 0;

	*ret = NULL;
	pl_confine_init(&confine, &options);
	if (uri != NULL) {
		pl_confine_uri(&confine, uri, true);
		r = pl_confine_begin(&confine, diag);
		port.rights = pl_confine_rights(&confine);
		if (r == 0)
			r = pl_port_open(ret, uri, PL_PORT_SEND, &port, diag);
	}
	if (r == 0)
		r = pl_confine_path(&confine, folder, true);
	if (r == 0)
		r = pl_confine(&confine, diag);
	if (r == 0 && pl_confine_gap(&confine) != NULL)
		pl_complain("%s", pl_confine_gap(&confine));
	if (r < 0) {
		(void)pl_port_close(*ret);
		*ret = NULL;
	}
	return r;
}

int pl_gen_close(struct pl_port *port)
{
	int r = pl_port_close(port);

	pl_confine_end(&confine);
	return r;
}

/* Sends the whole batch unless a signal stops it; negative errno. */
static int send_all(struct pl_port *port, struct pl_batch *batch, struct pl_diag *diag)
{
	while (batch->n > 0 && !stopped) {
		int n = pl_port_send(port, batch, diag);

		if (n < 0)
			return n;
		batch->n -= (uint32_t)n;
		memmove(batch->pkts, batch->pkts + n, batch->n * sizeof(batch->pkts[0]));
	}
	return 0;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts;

	if (ns > SLEEP_MAX_NS)
		ns = SLEEP_MAX_NS;
	ts = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	nanosleep(&ts, NULL);
}

/* Sends the packets that are due now. Returns 1 to go on, 0 at the end, or negative errno. */
static int turn(const struct pl_gen_source *s, struct pl_port *port, bool paced,
	struct pl_gen_account *acc, struct pl_diag *diag)
{
	static struct pl_batch batch;
	uint64_t now = paced ? s->start_ns + (pl_clock_mono_ns() - acc->begin_ns) : 0;
	uint64_t due = s->due_ns(s->gen), bytes = 0;
	uint32_t n;
	int r;

	if (due == UINT64_MAX)
		return 0;
	if (paced && now + 1 > due + LAG_MAX_NS) {
		s->skip_to(s->gen, now);
		acc->skipped++;
	}
	r = s->next(s->gen, paced ? now + 1 : UINT64_MAX, &batch);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	if (r == 0) {
		due = s->due_ns(s->gen);
		if (paced && due != UINT64_MAX && due > now)
			sleep_ns(due - now);
		return 1;
	}
	n = batch.n;
	for (uint32_t i = 0; i < n; i++)
		bytes += batch.pkts[i].len;
	r = port == NULL ? 0 : send_all(port, &batch, diag);
	/* Packets left in the batch were not sent: a signal or an error came before. */
	for (uint32_t i = 0; port != NULL && i < batch.n; i++)
		bytes -= batch.pkts[i].len;
	acc->sent += n - (port == NULL ? 0 : batch.n);
	acc->sent_bytes += bytes;
	return r < 0 ? r : 1;
}

int pl_gen_send(const struct pl_gen_source *source, struct pl_port *port, bool paced,
	uint64_t until_ns, struct pl_gen_account *acc, struct pl_diag *diag)
{
	int r = 1;

	acc->begin_ns = pl_clock_mono_ns();
	while (r > 0 && !stopped && (until_ns == 0 || pl_clock_mono_ns() < until_ns)) {
		r = turn(source, port, paced, acc, diag);
		if (asked != 0 && source->tell != NULL) {
			acc->end_ns = pl_clock_mono_ns();
			source->tell(source->gen, acc);
		}
		asked = 0;
	}
	acc->end_ns = pl_clock_mono_ns();
	return r < 0 ? r : 0;
}

void pl_gen_tell_skipped(const struct pl_gen_account *acc)
{
	if (acc->skipped > 0)
		pl_complain(
			"could not keep up with --rate: fell more than a second behind %llu times",
			(unsigned long long)acc->skipped);
}
