/* SPDX-License-Identifier: MIT */

/** Flow over a 90° notch, in litres per second, for a height in centimetres. */
export function flow(headCm) {
    return 1380 * (headCm / 100) ** 2.5;
}
