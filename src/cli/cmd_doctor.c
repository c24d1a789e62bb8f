/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline doctor: what this machine offers, and for what is missing the command that gives it.
 * Looks only; changes nothing and needs no privilege.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/doctor.h"

static const char *const status_names[STATUS_MAX] = { "ok", "warn", "fail" };

void doctor_found(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->found, sizeof(f->found), fmt, ap);
	va_end(ap);
}

void doctor_fix(struct finding *f, enum doctor_status status, const char *fmt, ...)
{
	va_list ap;

	f->status = status;
	va_start(ap, fmt);
	vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

int doctor_first_line(const char *path, char *dst, size_t cap)
{
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return -errno;
	if (fgets(dst, (int)cap, f) == NULL)
		dst[0] = '\0';
	fclose(f);
	dst[strcspn(dst, "\n")] = '\0';
	return 0;
}

int doctor_keyed_number(const char *path, const char *key, int base, uint64_t *ret)
{
	FILE *f = fopen(path, "re");
	char line[256];
	size_t len = strlen(key);
	int r = -ENOENT;

	if (f == NULL)
		return -errno;
	while (r != 0 && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			*ret = strtoull(line + len + 1, NULL, base);
			r = 0;
		}
	}
	fclose(f);
	return r;
}

static void check_kernel(struct finding *f)
{
	struct utsname u;
	unsigned int major = 0, minor = 0;

	uname(&u);
	doctor_found(f, "%s %s on %s, %ld processors", u.sysname, u.release, u.machine,
		sysconf(_SC_NPROCESSORS_ONLN));
	if (sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
		(major < 5 || (major == 5 && minor < 10)))
		doctor_fix(f, STATUS_WARN, "install a kernel from 5.10 on; Debian 12 has 6.1");
}

static void check_rcvbuf(struct finding *f)
{
	const int want = 64 << 20;
	socklen_t len = sizeof(int);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), granted = 0;
	char max[32];

	if (fd < 0) {
		doctor_found(f, "no UDP socket: %s", strerror(errno));
		doctor_fix(f, STATUS_FAIL, "allow this process to open sockets");
		return;
	}
	if (doctor_first_line("/proc/sys/net/core/rmem_max", max, sizeof(max)) < 0)
		snprintf(max, sizeof(max), "?");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &len);
	close(fd);
	/* The kernel doubles what was asked for, to cover its own bookkeeping. */
	doctor_found(f, "net.core.rmem_max is %s; a socket that asks for 64 MiB gets %d KiB", max,
		granted / 2 >> 10);
	if (granted / 2 < 8 << 20)
		doctor_fix(f, STATUS_WARN, "sysctl -w net.core.rmem_max=67108864");
}

static void check_port(struct finding *f, int type, uint16_t port, uint32_t addr, const char *what)
{
	struct sockaddr_in sa = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)
	};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0) {
		doctor_found(f, "no socket: %s", strerror(errno));
		doctor_fix(f, STATUS_FAIL, "allow this process to open sockets");
		return;
	}
	/* As a restarted daemon would: connections of its predecessor do not count. */
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) {
		doctor_found(f, "free (%s)", what);
	} else {
		doctor_found(f, "cannot be taken (%s): %s", what, strerror(errno));
		doctor_fix(f, STATUS_WARN, "ss -%snlp 'sport = :%u' shows the process that has it",
			type == SOCK_STREAM ? "t" : "u", port);
	}
	close(fd);
}

static void check_port_32766(struct finding *f)
{
	check_port(f, SOCK_DGRAM, 32766, INADDR_ANY, "telemetry reports");
}

static void check_port_54321(struct finding *f)
{
	check_port(f, SOCK_DGRAM, 54321, INADDR_ANY, "telemetry reports");
}

static void check_port_8400(struct finding *f)
{
	check_port(f, SOCK_STREAM, 8400, INADDR_LOOPBACK, "/metrics and health pages");
}

static void check_clock(struct finding *f)
{
	struct timex t = { 0 };
	int state = adjtimex(&t);
	char source[64] = "?";

	doctor_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		source, sizeof(source));
	if (state < 0) {
		doctor_found(f, "clock source %s; state unknown: %s", source, strerror(errno));
		return;
	}
	if (state == TIME_ERROR || (t.status & STA_UNSYNC) != 0) {
		doctor_found(f,
			"clock source %s; not synchronized: times of reports cannot be compared with "
			"those of other machines",
			source);
		doctor_fix(f, STATUS_WARN, "timedatectl set-ntp true");
	} else {
		doctor_found(f, "clock source %s; synchronized, error at most %ld us", source,
			t.maxerror);
	}
}

static void check_clock_source(struct finding *f)
{
	static const char folder[] = "/sys/devices/system/clocksource/clocksource0/";
	char path[128], now[64] = "", all[128] = "";

	snprintf(path, sizeof(path), "%scurrent_clocksource", folder);
	doctor_first_line(path, now, sizeof(now));
	snprintf(path, sizeof(path), "%savailable_clocksource", folder);
	doctor_first_line(path, all, sizeof(all));
	doctor_found(f, "%s (there are: %s)", now[0] != '\0' ? now : "unknown", all);
	if ((strcmp(now, "hpet") == 0 || strcmp(now, "acpi_pm") == 0) && strstr(all, "tsc") != NULL)
		doctor_fix(f, STATUS_WARN, "echo tsc > %scurrent_clocksource", folder);
}

static void check_files(struct finding *f)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	doctor_found(f, "%" PRIu64 " open files", (uint64_t)limit.rlim_cur);
	if (limit.rlim_cur < 1024)
		doctor_fix(f, STATUS_WARN, "ulimit -n 65536");
}

static void check_disk(struct finding *f)
{
	const char *path =
		access("/var/lib/pathline", F_OK) == 0 ? "/var/lib/pathline" : "/var/lib";
	struct statvfs st;
	uint64_t free_bytes;

	if (statvfs(path, &st) != 0) {
		doctor_found(f, "%s: %s", path, strerror(errno));
		return;
	}
	free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	doctor_found(f, "%s: %" PRIu64 " MiB free", path, free_bytes >> 20);
	if (free_bytes < UINT64_C(1) << 30)
		doctor_fix(f, STATUS_WARN, "df -h %s; make room, or write elsewhere", path);
}

static void check_huge_pages(struct finding *f)
{
	uint64_t total = 0, available = 0, kib = 0;

	doctor_keyed_number("/proc/meminfo", "HugePages_Total", 10, &total);
	doctor_keyed_number("/proc/meminfo", "HugePages_Free", 10, &available);
	doctor_keyed_number("/proc/meminfo", "Hugepagesize", 10, &kib);
	doctor_found(f, "%" PRIu64 " of %" PRIu64 " pages of %" PRIu64 " KiB free; none needed",
		available, total, kib);
}

static void check_ioam(struct finding *f)
{
	if (access("/proc/sys/net/ipv6/conf/all/ioam6_enabled", F_OK) == 0 ||
		access("/proc/sys/net/ipv6/conf/lo/ioam6_enabled", F_OK) == 0) {
		doctor_found(f, "this kernel can be an IOAM node");
	} else {
		doctor_found(f, "this kernel is no IOAM node; decoding IOAM does not need it");
		doctor_fix(f, STATUS_WARN, "use a kernel from 5.15 on with IPv6");
	}
}

static const struct {
	const char *name;
	void (*run)(struct finding *f);
} checks[] = {
	{ "kernel", check_kernel },
	{ "receive buffer", check_rcvbuf },
	{ "udp port 32766", check_port_32766 },
	{ "udp port 54321", check_port_54321 },
	{ "tcp port 8400", check_port_8400 },
	{ "clock", check_clock },
	{ "clock source", check_clock_source },
	{ "files", check_files },
	{ "disk", check_disk },
	{ "huge pages", check_huge_pages },
	{ "ioam", check_ioam },
	{ "packet", doctor_packet },
	{ "afxdp", doctor_af_xdp },
	{ "xdp program", doctor_xdp_program },
	{ "xdp in use", doctor_xdp_holders },
	{ "queues", doctor_rss },
	{ "locked memory", doctor_locked_memory },
	{ "btf", doctor_btf },
	{ "bpf jit", doctor_jit },
	{ "rdma", doctor_rdma },
	{ "capabilities", doctor_capabilities },
};

static const char *output;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		PL_ARGS_TEXT_OR_JSON(output),
		{ .type = PL_OPT_END },
	};

	output = "text";
	return table;
}

static void write_text(struct pl_buf *out, const char *name, const struct finding *f)
{
	pl_buf_printf(out, "%-5s %-15s %s\n", status_names[f->status], name, f->found);
	if (f->fix[0] != '\0')
		pl_buf_printf(out, "%-5s %-15s -> %s\n", "", "", f->fix);
}

static void write_json(struct pl_json *json, const char *name, const struct finding *f)
{
	pl_json_object(json);
	pl_json_key(json, "name");
	pl_json_str(json, name);
	pl_json_key(json, "status");
	pl_json_str(json, status_names[f->status]);
	pl_json_key(json, "found");
	pl_json_str(json, f->found);
	if (f->fix[0] != '\0') {
		pl_json_key(json, "fix");
		pl_json_str(json, f->fix);
	}
	pl_json_object_end(json);
}

static int run(int argc, char **argv)
{
	unsigned int counts[STATUS_MAX] = { 0 };
	struct pl_opt_list operands;
	struct pl_json json;
	struct pl_buf out;
	bool as_json;
	int code;

	if (pl_command_parse(&pl_command_doctor, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		pl_complain("doctor takes no operand, not '%s'", operands.items[0]);
		pl_opt_list_done(&operands);
		return PL_EXIT_USAGE;
	}
	pl_opt_list_done(&operands);

	as_json = strcmp(output, "json") == 0;
	pl_buf_init(&out);
	pl_json_init(&json, &out);
	if (as_json) {
		pl_json_object(&json);
		pl_json_key(&json, "checks");
		pl_json_array(&json);
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct finding f = { 0 };

		checks[i].run(&f);
		counts[f.status]++;
		if (as_json)
			write_json(&json, checks[i].name, &f);
		else
			write_text(&out, checks[i].name, &f);
	}
	if (as_json) {
		pl_json_array_end(&json);
		for (unsigned int s = 0; s < STATUS_MAX; s++) {
			pl_json_key(&json, status_names[s]);
			pl_json_u64(&json, counts[s]);
		}
		pl_json_object_end(&json);
		pl_buf_chr(&out, '\n');
	} else {
		pl_buf_printf(&out, "%u ok, %u warn, %u fail\n", counts[STATUS_OK],
			counts[STATUS_WARN], counts[STATUS_FAIL]);
	}
	fwrite(out.data, 1, out.len, stdout);
	pl_buf_done(&out);
	return counts[STATUS_FAIL] > 0 ? PL_EXIT_UNAVAILABLE : PL_EXIT_OK;
}

const struct pl_command pl_command_doctor = {
	.name = "doctor",
	.summary = "check what this machine supports, and print the command that mends each fault",
	.usage = "[OPTION]…",
	.description =
		"Only looks, and needs no privileges. Each line is ok, warn (something will be slower or\n"
		"missing) or fail (pathline cannot work); the line below it says what to do. Exit code\n"
		"69: a line failed.",
	.examples = "  pathline doctor\n  pathline doctor -o json\n",
	.options = options,
	.run = run,
};
