/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the terminal, in a file of its own: term.h has macros such as "columns" and "lines". */
#include "show/top_terminal.h"

#include <unistd.h>

#include <curses.h>
#include <term.h>

const char *pl_top_no_terminal(void)
{
	const char *cup;
	int error = 0;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return "standard output is not a terminal";
	if (setupterm(NULL, STDOUT_FILENO, &error) == ERR)
		return "unknown terminal type (TERM)";
	cup = tigetstr("cup");
	if (cup == NULL || cup == (const char *)-1)
		return "the terminal cannot be drawn on (TERM)";
	return NULL;
}
