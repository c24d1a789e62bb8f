/* SPDX-License-Identifier: BSD-2-Clause */
/* Exit codes, the same for every subcommand. */
#pragma once

enum {
	PL_EXIT_OK = 0,
	PL_EXIT_FAILED = 1,
	PL_EXIT_USAGE = 2,
	PL_EXIT_NOTHING = 3,      /* ran, but found nothing, or a value crossed a threshold */
	PL_EXIT_UNAVAILABLE = 69, /* something needed is absent */
	PL_EXIT_PRIVILEGE = 77,
	PL_EXIT_CONFIG = 78,
};
