/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends a process at once at a second signal. */
#include "runtime/ending.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"

#define ONE_SIGNAL_NS UINT64_C(1000000000)

static _Atomic uint64_t first_ns;
static struct pl_buf began; /* written before `ending` */
static atomic_bool ending;

void pl_ending_reset(void)
{
	ending = false;
	pl_buf_done(&began);
	pl_buf_init(&began);
}

static void end_at_once(void)
{
	static const char text[] =
		"pathline: stopped at once by a further signal, without its outputs' rest. The accounts when the end began:\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	if (!began.failed)
		(void)!write(STDERR_FILENO, began.data, began.len);
	_exit(1);
}

void pl_ending_signal(bool first)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	if (first)
		first_ns = now_ns;
	else if (ending && now_ns - first_ns > ONE_SIGNAL_NS)
		end_at_once();
}

void pl_ending_begins(const struct pl_buf *accounts)
{
	began = *accounts;
	ending = true;
}
