/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline version: the version of this binary and of the libraries it was built with. */
#include <microhttpd.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/sandbox.h"
#include "cli/args.h"
#include "cli/command.h"
#include "kafka/kafka.h"
#include "netio/xdp.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

#ifdef NDEBUG
#define ASSERTIONS "off"
#else
#define ASSERTIONS "on"
#endif

#ifdef __SANITIZE_ADDRESS__
#define SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER "thread"
#else
#define SANITIZER "none"
#endif

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

static int run(int argc, char **argv)
{
	char xxhash[32];
	const struct {
		const char *name, *version;
	} parts[] = {
		{ "compiler", COMPILER },
		{ "architecture",
#if defined(__x86_64__)
			"x86_64"
#elif defined(__aarch64__)
			"aarch64"
#else
			"other"
#endif
		},
		{ "assertions", ASSERTIONS },
		{ "sanitizer", SANITIZER },
		{ "libpcap", pcap_lib_version() },
		{ "libyaml", yaml_get_version_string() },
		{ "libmicrohttpd", MHD_get_version() },
		{ "zlib", zlibVersion() },
		{ "xxhash", xxhash },
		{ "libseccomp", pl_sandbox_library() },
		{ "librdkafka", pl_kafka_library() },
#if PL_HAVE_BPF
		{ "libbpf", pl_xdp_library() },
		{ "kernel programs", "built in" },
#else
		{ "kernel programs", "none: clang, bpftool or libbpf was missing" },
#endif
#if PL_HAVE_VERBS
		{ "RDMA NICs", "built in" },
#else
		{ "RDMA NICs", "none: libibverbs or librdmacm was missing" },
#endif
	};
	struct pl_opt_list operands;
	struct pl_json json;
	struct pl_buf out;
	int code;

	if (pl_command_parse(&pl_command_version, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		pl_complain("version takes no operand, not '%s'", operands.items[0]);
		pl_opt_list_done(&operands);
		return PL_EXIT_USAGE;
	}
	pl_opt_list_done(&operands);
	snprintf(xxhash, sizeof(xxhash), "%u.%u.%u", XXH_versionNumber() / 10000,
		XXH_versionNumber() / 100 % 100, XXH_versionNumber() % 100);
	pl_buf_init(&out);
	if (strcmp(output, "json") == 0) {
		pl_json_init(&json, &out);
		pl_json_object(&json);
		pl_json_text(&json, "version", PL_VERSION);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			pl_json_key(&json, parts[i].name);
			pl_json_str(&json, parts[i].version);
		}
		pl_json_object_end(&json);
		pl_buf_chr(&out, '\n');
	} else {
		pl_buf_str(&out, "pathline " PL_VERSION "\n");
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			pl_buf_printf(&out, "  %-15s %s\n", parts[i].name, parts[i].version);
	}
	code = out.failed ? PL_EXIT_FAILED : PL_EXIT_OK;
	if (code == PL_EXIT_OK)
		fwrite(out.data, 1, out.len, stdout);
	else
		pl_complain("out of memory");
	pl_buf_done(&out);
	return code;
}

const struct pl_command pl_command_version = {
	.name = "version",
	.summary = "print the version and the options of the build",
	.usage = "[OPTION]…",
	.options = options,
	.run = run,
};
