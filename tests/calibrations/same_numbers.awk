# SPDX-License-Identifier: Apache-2.0
# Do two texts hold the same words, and numbers within one part in a thousand?
# awk -f same_numbers.awk A B: silent if so; else the first difference, exit code 1.
function words(text, into,    n, i) {
  gsub(/[][{}:,]/, " & ", text)
  n = split(text, into, /[ \t]+/)
  return n
}
function near(a, b,    d, size) {
  if (a == b) return 1
  if (a !~ /^-?[0-9]/ || b !~ /^-?[0-9]/) return 0
  d = a - b
  if (d < 0) d = -d
  size = a < 0 ? -a : a + 0
  return d <= 1e-3 * size || d < 1e-7
}
BEGIN {
  a = ARGV[1]
  b = ARGV[2]
  while ((getline left < a) > 0) {
    ++line
    if ((getline right < b) <= 0) { print b ": ends before line " line; exit 1 }
    if (left == right) continue
    n = words(left, x)
    if (words(right, y) != n) { print a ":" line ": other words than in " b; exit 1 }
    for (i = 1; i <= n; ++i) {
      if (!near(x[i], y[i])) { print a ":" line ": " x[i] " here, " y[i] " in " b; exit 1 }
    }
  }
  if ((getline right < b) > 0) { print b ": goes on after line " line; exit 1 }
}
