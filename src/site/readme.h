/* SPDX-License-Identifier: MIT
 *
 * The file README of a folder, shown below its listing as plain text. Nothing in it is markup, so
 * it can neither load anything nor run. Private to site/.
 */
#pragma once

#include "site/folder.h"
#include "site/text.h"

/* At most so many bytes of the file are shown. */
enum { SITE_README_MAX = 64 * 1024 };

/* Adds README.md, README.txt or README of the folder, the first of these that is there, in any
 * case. Adds nothing if there is none, it cannot be read, or the request does not quote it. */
void site_readme_add(struct site_text *text, const struct site *site,
                     const struct site_listing_request *request, const struct site_folder *folder);
