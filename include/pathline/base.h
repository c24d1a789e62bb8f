/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libpathline: telemetry memory and reports for programs of your own. Rules of all its headers:
 *
 * Errors       functions return 0 or more, or a negative errno value. Those that take a struct
 *              pathline_error say it in words too; it may be NULL. Nothing is printed, logged or
 *              asserted on what a caller gives.
 * Ownership    what a function gives in *ret belongs to the caller until the matching _close, which
 *              takes NULL. Paths, keys and values are copied. Strings that are returned are static.
 * Threads      one handle, one thread at a time; different handles are independent. No signal is
 *              touched, no thread is started.
 * Bytes        keys and values are bytes as the caller gives them. Numbers in records and stores
 *              are little-endian. Times are nanoseconds since the Unix epoch, durations nanoseconds
 *              or as their names say.
 * Stability    functions are only added within a major version; structures end in reserved members,
 *              which are zero, and zero is the default of every option. Every symbol begins with
 *              pathline_, every macro with PATHLINE_.
 */
#ifndef PATHLINE_BASE_H
#define PATHLINE_BASE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; pathline_version is that of the library that is linked. */
#define PATHLINE_API_MAJOR 0
#define PATHLINE_API_MINOR 1

/* "0.1.0" */
const char *pathline_version(void);

struct pathline_error {
	char text[512]; /* a sentence, UTF-8; empty where nothing failed */
};

#ifdef __cplusplus
}
#endif

#endif
