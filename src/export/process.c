/* SPDX-License-Identifier: BSD-2-Clause */
/* process_*: metrics of this process as Prometheus clients have them, read from /proc. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "export/process.h"

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	if (d == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	/* Without ".", "..", and the descriptor of the open folder. */
	return n > 3 ? n - 3 : 0;
}

static bool memory(uint64_t *ret_virtual, uint64_t *ret_resident)
{
	unsigned long long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	bool good;

	if (f == NULL)
		return false;
	good = fscanf(f, "%llu %llu", &pages, &resident) == 2;
	fclose(f);
	*ret_virtual = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	*ret_resident = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return good;
}

/* Returns the start time of this process since the epoch: field 22 of stat, in ticks since boot. */
static double read_start_time(void)
{
	char text[1024];
	FILE *f = fopen("/proc/self/stat", "re");
	const char *p;
	size_t n;
	double ticks = 0;

	if (f == NULL)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name in parentheses may hold any character; fields are counted behind it. */
	p = strrchr(text, ')');
	for (int field = 2; p != NULL && field < 22; field++) {
		p = strchr(p + 1, ' ');
	}
	if (p != NULL)
		ticks = strtod(p + 1, NULL);
	return (double)(pl_clock_real_ns() - pl_clock_read(CLOCK_BOOTTIME)) * 1e-9 +
	       ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Computed once: each difference of two clocks is another one, and a change means a restart. */
static double started;

static void set_started(void)
{
	started = read_start_time();
}

static double start_time(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_started);
	return started;
}

static void value(struct pl_exposition *page, const char *name, enum pl_metric_type type,
	const char *unit, const char *help, double v)
{
	pl_exposition_family(page, name, type, unit, help);
	pl_exposition_double(page, NULL, 0, v);
}

void pl_exposition_process(struct pl_exposition *page)
{
	struct rlimit limit = { 0 };
	uint64_t virtual_bytes, resident_bytes;

	value(page, "process_cpu_seconds", PL_METRIC_COUNTER, "seconds",
		"Processor time used, user and system.",
		(double)pl_clock_read(CLOCK_PROCESS_CPUTIME_ID) * 1e-9);
	value(page, "process_open_fds", PL_METRIC_GAUGE, NULL, "Open file descriptors.",
		open_fds());
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		value(page, "process_max_fds", PL_METRIC_GAUGE, NULL,
			"Limit on open file descriptors.", (double)limit.rlim_cur);
	if (memory(&virtual_bytes, &resident_bytes)) {
		value(page, "process_virtual_memory_bytes", PL_METRIC_GAUGE, "bytes",
			"Size of the address space.", (double)virtual_bytes);
		value(page, "process_resident_memory_bytes", PL_METRIC_GAUGE, "bytes",
			"Memory in use.", (double)resident_bytes);
	}
	value(page, "process_start_time_seconds", PL_METRIC_GAUGE, "seconds",
		"When the process began, since the Unix epoch.", start_time());
}
