/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and helps of the metric families of all services, as "pathline help metrics" prints
 * them. */
#pragma once

#include "export/exposition.h"

/* Writes each family once, without samples, in the order of the services. Returns -ENOMEM. */
int pl_families_describe(struct pl_exposition *page);
