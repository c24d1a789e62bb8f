/* SPDX-License-Identifier: BSD-2-Clause */
/* Networks that are built into the program: the files of docs/examples/lab. */
#include <string.h>

#include "lab/topology.h"

static const struct {
	const char *name, *text;
} networks[] = {
	{
		"dta",
#include "lab/dta.inc"
	},
	{
		"intcollector",
#include "lab/intcollector.inc"
	},
	{
		"marking",
#include "lab/marking.inc"
	},
	{
		"marking-multiplexed",
#include "lab/marking-multiplexed.inc"
	},
	{
		"p4-to-rdma",
#include "lab/p4-to-rdma.inc"
	},
};

const char *pl_lab_published(const char *name)
{
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
		if (strcmp(networks[i].name, name) == 0)
			return networks[i].text;
	}
	return NULL;
}
