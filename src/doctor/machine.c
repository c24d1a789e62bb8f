/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel, its clock and sockets, files and memory: what every command needs. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/checks.h"

void pl_doctor_kernel(struct pl_finding *f)
{
	struct utsname u;
	unsigned int major = 0, minor = 0;

	uname(&u);
	pl_doctor_found(f, "%s %s on %s, %ld processors", u.sysname, u.release, u.machine,
		sysconf(_SC_NPROCESSORS_ONLN));
	if (sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
		(major < 5 || (major == 5 && minor < 10)))
		pl_doctor_fix(
			f, PL_DOCTOR_WARN, "install a kernel from 5.10 on; Debian 12 has 6.1");
}

void pl_doctor_rcvbuf(struct pl_finding *f)
{
	const int want = 64 << 20;
	socklen_t len = sizeof(int);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), granted = 0;
	char max[32];

	if (fd < 0) {
		pl_doctor_found(f, "no UDP socket: %s", strerror(errno));
		pl_doctor_fix(f, PL_DOCTOR_FAIL, "allow this process to open sockets");
		return;
	}
	if (pl_doctor_first_line("/proc/sys/net/core/rmem_max", max, sizeof(max)) < 0)
		snprintf(max, sizeof(max), "?");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len);
	close(fd);
	/* The kernel doubles the number that was asked for, to cover its own bookkeeping. */
	pl_doctor_found(f, "net.core.rmem_max is %s; a socket that asks for 64 MiB gets %d KiB",
		max, granted / 2 >> 10);
	if (granted / 2 < 8 << 20)
		pl_doctor_fix(f, PL_DOCTOR_WARN, "sysctl -w net.core.rmem_max=67108864");
}

static void check_port(
	struct pl_finding *f, int type, uint16_t port, uint32_t addr, const char *what)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)
	};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0) {
		pl_doctor_found(f, "no socket: %s", strerror(errno));
		pl_doctor_fix(f, PL_DOCTOR_FAIL, "allow this process to open sockets");
		return;
	}
	/* As a restarted daemon would: connections of its predecessor do not count. */
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) {
		pl_doctor_found(f, "free (%s)", what);
	} else {
		pl_doctor_found(f, "cannot be taken (%s): %s", what, strerror(errno));
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"ss -%snlp 'sport = :%u' shows the process that has it",
			type == SOCK_STREAM ? "t" : "u", port);
	}
	close(fd);
}

void pl_doctor_port_32766(struct pl_finding *f)
{
	check_port(f, SOCK_DGRAM, 32766, INADDR_ANY, "telemetry reports");
}

void pl_doctor_port_54321(struct pl_finding *f)
{
	check_port(f, SOCK_DGRAM, 54321, INADDR_ANY, "telemetry reports");
}

void pl_doctor_port_8400(struct pl_finding *f)
{
	check_port(f, SOCK_STREAM, 8400, INADDR_LOOPBACK, "/metrics and health pages");
}

void pl_doctor_clock(struct pl_finding *f)
{
	struct timex t = { 0 };
	int state = adjtimex(&t);
	char source[64] = "?";

	pl_doctor_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		source, sizeof(source));
	if (state < 0) {
		pl_doctor_found(f, "clock source %s; state unknown: %s", source, strerror(errno));
		return;
	}
	if (state == TIME_ERROR || (t.status & STA_UNSYNC) != 0) {
		pl_doctor_found(f,
			"clock source %s; not synchronized: times of reports cannot be compared with "
			"those of other machines",
			source);
		pl_doctor_fix(f, PL_DOCTOR_WARN, "timedatectl set-ntp true");
	} else {
		pl_doctor_found(f, "clock source %s; synchronized, error at most %ld us", source,
			t.maxerror);
	}
}

void pl_doctor_clock_source(struct pl_finding *f)
{
	static const char folder[] = "/sys/devices/system/clocksource/clocksource0/";
	char path[128], now[64] = "", all[128] = "";

	snprintf(path, sizeof(path), "%scurrent_clocksource", folder);
	pl_doctor_first_line(path, now, sizeof(now));
	snprintf(path, sizeof(path), "%savailable_clocksource", folder);
	pl_doctor_first_line(path, all, sizeof(all));
	pl_doctor_found(f, "%s (there are: %s)", now[0] != '\0' ? now : "unknown", all);
	if ((strcmp(now, "hpet") == 0 || strcmp(now, "acpi_pm") == 0) && strstr(all, "tsc") != NULL)
		pl_doctor_fix(f, PL_DOCTOR_WARN, "echo tsc > %scurrent_clocksource", folder);
}

void pl_doctor_files(struct pl_finding *f)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	pl_doctor_found(f, "%" PRIu64 " open files", (uint64_t)limit.rlim_cur);
	if (limit.rlim_cur < 1024)
		pl_doctor_fix(f, PL_DOCTOR_WARN, "ulimit -n 65536");
}

void pl_doctor_disk(struct pl_finding *f)
{
	const char *path =
		access("/var/lib/pathline", F_OK) == 0 ? "/var/lib/pathline" : "/var/lib";
	struct statvfs st;
	uint64_t free_bytes;

	if (statvfs(path, &st) != 0) {
		pl_doctor_found(f, "%s: %s", path, strerror(errno));
		return;
	}
	free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	pl_doctor_found(f, "%s: %" PRIu64 " MiB free", path, free_bytes >> 20);
	if (free_bytes < UINT64_C(1) << 30)
		pl_doctor_fix(f, PL_DOCTOR_WARN, "df -h %s; make room, or write elsewhere", path);
}

void pl_doctor_huge_pages(struct pl_finding *f)
{
	uint64_t total = 0, available = 0, kib = 0;

	pl_doctor_keyed_number("/proc/meminfo", "HugePages_Total", 10, &total);
	pl_doctor_keyed_number("/proc/meminfo", "HugePages_Free", 10, &available);
	pl_doctor_keyed_number("/proc/meminfo", "Hugepagesize", 10, &kib);
	pl_doctor_found(f, "%" PRIu64 " of %" PRIu64 " pages of %" PRIu64 " KiB free; none needed",
		available, total, kib);
}

void pl_doctor_ioam(struct pl_finding *f)
{
	if (access("/proc/sys/net/ipv6/conf/all/ioam6_enabled", F_OK) == 0 ||
		access("/proc/sys/net/ipv6/conf/lo/ioam6_enabled", F_OK) == 0) {
		pl_doctor_found(f, "this kernel can be an IOAM node");
	} else {
		pl_doctor_found(f, "this kernel is no IOAM node; decoding IOAM does not need it");
		pl_doctor_fix(f, PL_DOCTOR_WARN, "use a kernel from 5.15 on with IPv6");
	}
}
