/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/choose.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/num.h"
#include "base/test.h"
#include "verbs/verbs.h"

static void test_gids(void)
{
	static const struct {
		const char *name;
		struct {
			const char *addr;
			bool roce2;
		} gids[5];
		int want;
	} cases[] = {
		{ "none", { { NULL, false } }, -1 },
		{ "as soft-RoCE has them",
			{ { "fe80::5054:ff:fe00:1", true }, { "10.77.0.1", true },
				{ "fd00::1", true } },
			1 },
		{ "each address twice, as ConnectX has them",
			{ { "fe80::1", false }, { "fe80::1", true }, { "10.0.0.1", false },
				{ "10.0.0.1", true } },
			3 },
		{ "the first of two IPv4 addresses", { { "10.0.0.1", true }, { "10.0.0.2", true } },
			0 },
		{ "a global address before one of the link",
			{ { "fe80::1", true }, { "2001:db8::1", true } }, 1 },
		{ "one of the link when there is nothing else", { { "fe80::1", true } }, 0 },
		{ "RoCEv1 only", { { "fe80::1", false }, { "10.0.0.1", false } }, -1 },
		{ "an empty place", { { "::", true }, { "fe80::1", true } }, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verbs_gid gids[5];
		unsigned int n = 0;

		for (; n < 5 && cases[i].gids[n].addr != NULL; n++) {
			gids[n] = (struct verbs_gid){ .index = n, .roce2 = cases[i].gids[n].roce2 };
			if (pl_parse_addr(cases[i].gids[n].addr, &gids[n].addr) < 0)
				ok(false, "%s is an address", cases[i].gids[n].addr);
		}
		ok(verbs_gid_choose(gids, n) == cases[i].want, "address: %s", cases[i].name);
	}
}

/* What happened to the table since an address was chosen. */
static void test_gids_again(void)
{
	static const struct {
		const char *name;
		struct {
			const char *addr;
			bool roce2;
			uint32_t index;
		} gids[4];
		const char *home; /* NULL: the first time */
		int index, want;
	} cases[] = {
		{ "the best at first", { { "fe80::1", true, 0 }, { "10.0.0.1", true, 1 } }, NULL,
			-1, 1 },
		{ "the one that was named", { { "fe80::1", true, 0 }, { "10.0.0.1", true, 1 } },
			NULL, 0, 0 },
		{ "none has that index", { { "fe80::1", true, 0 }, { "10.0.0.1", true, 2 } }, NULL,
			1, -1 },
		{ "back at another index", { { "fe80::1", true, 0 }, { "10.0.0.1", true, 3 } },
			"10.0.0.1", -1, 1 },
		{ "the same, though another would be the first",
			{ { "10.0.0.9", true, 1 }, { "10.0.0.1", true, 3 } }, "10.0.0.1", -1, 1 },
		{ "it was named by its index, which is another now",
			{ { "10.0.0.9", true, 1 }, { "10.0.0.1", true, 3 } }, "10.0.0.1", 1, 1 },
		{ "not as RoCEv1", { { "10.0.0.1", false, 1 }, { "10.0.0.1", true, 2 } },
			"10.0.0.1", -1, 1 },
		{ "another in its place", { { "fe80::1", true, 0 }, { "10.0.0.9", true, 1 } },
			"10.0.0.1", -1, 1 },
		{ "another at its index", { { "fe80::1", true, 0 }, { "10.0.0.9", true, 1 } },
			"10.0.0.1", 1, 1 },
		{ "taken away", { { NULL, false, 0 } }, "10.0.0.1", -1, -1 },
		{ "taken away from its index", { { "fe80::1", true, 0 } }, "10.0.0.1", 1, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verbs_gid gids[4], home = { .roce2 = true };
		unsigned int n = 0;

		for (; n < 4 && cases[i].gids[n].addr != NULL; n++) {
			gids[n] = (struct verbs_gid){ .index = cases[i].gids[n].index,
				.roce2 = cases[i].gids[n].roce2 };
			if (pl_parse_addr(cases[i].gids[n].addr, &gids[n].addr) < 0)
				ok(false, "%s is an address", cases[i].gids[n].addr);
		}
		if (cases[i].home != NULL && pl_parse_addr(cases[i].home, &home.addr) < 0)
			ok(false, "%s is an address", cases[i].home);
		ok(verbs_gid_find(gids, n, cases[i].home != NULL ? &home : NULL, cases[i].index) ==
				cases[i].want,
			"address again: %s", cases[i].name);
	}
}

static void test_names(void)
{
	static const struct {
		const char *text;
		int want;
		uint8_t port;
		int gid;
	} cases[] = { { "rxe0", 0, 1, -1 }, { "mlx5_0?port=2", 0, 2, -1 },
		{ "mlx5_0?gid=3&port=1", 0, 1, 3 }, { "rxe0?gid=0", 0, 1, 0 },
		{ "", -EINVAL, 0, 0 }, { "?port=1", -EINVAL, 0, 0 },
		{ "rxe0?port=0", -EINVAL, 0, 0 }, { "rxe0?port=256", -EINVAL, 0, 0 },
		{ "rxe0?gid=-1", -EINVAL, 0, 0 }, { "rxe0?gid=70000", -EINVAL, 0, 0 },
		{ "rxe0?queue=1", -EINVAL, 0, 0 }, { "rxe0?port=1&port=2", -EINVAL, 0, 0 },
		{ "a-name-that-is-longer-than-any-that-the-kernel-gives-to-its-devices", -EINVAL, 0,
			0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_verbs_options o = { .port = 0 };
		struct pl_diag diag = { .text = "" };
		int r = pl_verbs_parse(&o, cases[i].text, &diag);

		ok(r == cases[i].want &&
				(r < 0 || (o.port == cases[i].port && o.gid == cases[i].gid)) &&
				(r == 0 || diag.text[0] != '\0'),
			"device: '%s'", cases[i].text);
	}
}

/* proc stands for file systems that are none of memory. */
static void test_memory(void)
{
	struct pl_diag diag = { .text = "" };
	int memory = memfd_create("test", MFD_CLOEXEC);
	FILE *proc = fopen("/proc/self/stat", "re");

	ok(memory >= 0 && pl_verbs_memory_check(memory, "x", &diag) == 0,
		"a memfd can be registered");
	ok(proc != NULL && pl_verbs_memory_check(fileno(proc), "x.plr", &diag) == -ENOTSUP &&
			strstr(diag.text, "x.plr is on a disk") != NULL,
		"a file elsewhere cannot");
	ok(pl_verbs_memory_check(-1, "x", &diag) == -EBADF, "what is no file is an error");
	if (memory >= 0)
		close(memory);
	if (proc != NULL)
		fclose(proc);
}

int main(void)
{
	test_gids();
	test_gids_again();
	test_names();
	test_memory();
	return pl_test_done();
}
