/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA devices. */
#include <stdio.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "verbs/verbs.h"

#if PL_HAVE_VERBS

#define DEVICES_MAX 8

/* Names the devices and their states; true when any of them can be used. */
static bool list(struct pl_finding *f, const struct pl_verbs_device *devices, unsigned int n)
{
	bool usable = false;
	size_t used = 0;

	for (unsigned int i = 0; i < n && used < sizeof(f->found); i++) {
		const struct pl_verbs_device *d = &devices[i];
		int len = snprintf(f->found + used, sizeof(f->found) - used, "%s%s%s%s%s: %s",
			i > 0 ? "; " : "", d->name, d->netdev[0] != '\0' ? " (" : "", d->netdev,
			d->netdev[0] != '\0' ? ")" : "", d->state);

		used += len > 0 ? (size_t)len : 0;
		usable = usable || d->usable;
	}
	return usable;
}

void pl_doctor_rdma(struct pl_finding *f)
{
	struct pl_verbs_device devices[DEVICES_MAX];
	int n = pl_verbs_devices(devices, DEVICES_MAX);

	if (n <= 0) {
		/* Most hosts have none and want none. */
		pl_doctor_found(f, "%s; pathline collect works with packet: and afxdp: without one",
			n == 0 ? "no RDMA device" : "no RDMA in this kernel");
		return;
	}
	if (!list(f, devices, n < DEVICES_MAX ? (unsigned int)n : DEVICES_MAX)) {
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"bring its interface up and give it an address; rdma link show");
		return;
	}
	if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0)
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"connections by RDMA-CM need /dev/infiniband/rdma_cm: modprobe rdma_ucm");
}

#else

void pl_doctor_rdma(struct pl_finding *f)
{
	pl_doctor_found(f,
		"built without libibverbs and librdmacm; pathline collect works with packet: and afxdp: without them");
}

#endif
