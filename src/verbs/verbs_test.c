/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be seen without a device; the rest is tests/interop/rxe/collect.py. */
#include "verbs/verbs.h"

#include <errno.h>

#include "base/test.h"

static void test_open(void)
{
	struct pl_verbs_options o = { .device = "no-such-device0", .gid = -1 };
	struct pl_diag diag = { .text = "" };
	struct pl_verbs *v = NULL;
	int r = pl_verbs_open(&v, &o, &diag);

	/* A kernel without RDMA says so in its own way. */
	ok(r < 0 && v == NULL && diag.text[0] != '\0', "a device that is not there: %s", diag.text);
	o.max_qps = PL_VERBS_QPS_MAX + 1;
	ok(pl_verbs_open(&v, &o, &diag) == -EINVAL, "more queue pairs than can be");
	o.max_qps = 1;
	o.receives = PL_VERBS_RECEIVES_MAX + 1;
	ok(pl_verbs_open(&v, &o, &diag) == -EINVAL, "more receives than can be");
	pl_verbs_close(NULL);
}

static void test_devices(void)
{
	struct pl_verbs_device devices[4];
	int n = pl_verbs_devices(devices, 4);

	for (int i = 0; i < n && i < 4; i++)
		ok(devices[i].name[0] != '\0' && devices[i].state[0] != '\0', "%s: %s",
			devices[i].name, devices[i].state);
	ok(n >= 0 || n == -ENOSYS || n == -ENODEV || n == -ENOENT || n == -EACCES || n == -EPERM,
		"devices are listed (%d)", n);
}

int main(void)
{
	test_open();
	test_devices();
	return pl_test_done();
}
