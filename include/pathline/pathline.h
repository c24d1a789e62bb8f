/* SPDX-License-Identifier: BSD-2-Clause */
/* All of libpathline. */
#ifndef PATHLINE_PATHLINE_H
#define PATHLINE_PATHLINE_H

#include "pathline/base.h"
#include "pathline/record.h"
#include "pathline/region.h"
#include "pathline/reporter.h"

#endif
