/* SPDX-License-Identifier: BSD-2-Clause */
/* The families of the metrics pages of all services, by name and help: what "pathline help metrics"
 * prints. */
#pragma once

#include "export/exposition.h"

/* Each family once, without samples, in the order of the services. -ENOMEM. */
int pl_families_describe(struct pl_exposition *page);
