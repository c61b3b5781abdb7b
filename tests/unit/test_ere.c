/* SPDX-License-Identifier: MIT */
/*
 * The regular expressions of marker rules: by examples, and against libc's regexec on random patterns and texts.
 */
#include "tests/tap.h"
#include "tracker/ere.h"

#include <errno.h>
#include <regex.h>
#include <time.h>

static struct rs_ere_scratch scratch;

/* "GROUP|GROUP...", "-" for a group that took no part; "no" without a match. */
static const char *match(const char *pattern, const char *text)
{
	static char out[4096];
	struct rs_ere_span g[RS_ERE_GROUPS + 1];
	struct rs_ere *e;
	const char *why;
	size_t at, n = 0;

	if (rs_ere_compile(pattern, strlen(pattern), &e, &at, &why))
		return why;
	if (!rs_ere_match(e, &scratch, text, strlen(text), g)) {
		rs_ere_free(e);
		return "no";
	}
	for (unsigned i = 0; i <= rs_ere_groups(e); i++)
		n += (size_t)(g[i].from < 0
				      ? snprintf(out + n, sizeof(out) - n, "%s-", i ? "|" : "")
				      : snprintf(out + n, sizeof(out) - n, "%s%.*s", i ? "|" : "",
						 g[i].to - g[i].from, text + g[i].from));
	rs_ere_free(e);
	return out;
}

static void examples(void)
{
	is_str(match("abc", "abc"), "abc", "letters");
	is_str(match("abc", "abcd"), "no", "the whole text has to match, to its end");
	is_str(match("bc", "abc"), "no", "and from its beginning");
	is_str(match("^abc$", "abc"), "abc", "anchors are allowed where they are true");
	is_str(match("a^b", "ab"), "no", "an anchor in the middle is never true");
	is_str(match("a$b|ab", "ab"), "ab", "but leaves the alternatives alone");
	is_str(match("", ""), "", "an empty pattern is an empty text");
	is_str(match("fwd (layer[0-9]+)", "fwd layer12"), "fwd layer12|layer12", "a group");
	is_str(match("(a|ab)(c|bcd)", "abcd"), "abcd|a|bcd", "the earlier alternative");
	is_str(match("(a*)(a*)", "aaa"), "aaa|aaa|", "the longer repetition");
	is_str(match("(x)?a", "a"), "a|-", "a group that takes no part");
	is_str(match("(a|b)*", "abab"), "abab|b", "a repeated group is its last turn");
	is_str(match("(a*)*", "b"), "no", "a loop around nothing ends");
	is_str(match("(a*)+b", "aab"), "aab|aa", "and matches");
	is_str(match("a{2}b{1,2}c{0,}d{0}", "aabbccc"), "aabbccc", "counted repetitions");
	is_str(match("a{2,3}", "aaaa"), "no", "no more than the most");
	is_str(match("(ab){2,3}", "ababab"), "ababab|ab", "of groups");
	is_str(match("[a-c]+[^a-c][]x^-]+", "abcd]x^-"), "abcd]x^-", "sets");
	is_str(match("[[:digit:]_]+[[:upper:]]", "12_A"), "12_A", "classes");
	is_str(match("a\\.b\\\\c\\(\\[\\{", "a.b\\c([{"), "a.b\\c([{", "special characters");
	is_str(match("a.c", "a\xc3\x63"), "a\xc3\x63", "a point is a byte");
	is_str(match("a|b||c", ""), "", "an empty alternative");
	is_str(match("Thunk:#name=(.*),hlo_op=([^,#]*)(,.*)?#",
		     "Thunk:#name=a/b,c,hlo_op=f.1,x=3#"),
	       "Thunk:#name=a/b,c,hlo_op=f.1,x=3#|a/b,c|f.1|,x=3", "a real text");
}

static void refused(void)
{
	static const struct {
		const char *pattern;
		size_t at;
		int err;
		const char *why;
	} bad[] = {
		{"a(b", 1, -EINVAL, "the ( is not closed"},
		{"ab)", 2, -EINVAL, "no ( is open; for the character write \\)"},
		{"a[b", 1, -EINVAL, "the [ is not closed"},
		{"a[]", 1, -EINVAL, "the [ is not closed"},
		{"a[z-b]", 2, -EINVAL, "the range ends before it begins"},
		{"[[:nothing:]]", 1, -EINVAL, "no such class of characters"},
		{"[[.a.]]", 1, -EINVAL, "collating symbols and equivalence classes are not known"},
		{"*a", 0, -EINVAL, "there is nothing to repeat"},
		{"a|+", 2, -EINVAL, "there is nothing to repeat"},
		{"^*", 1, -EINVAL, "there is nothing to repeat"},
		{"a**", 2, -EINVAL, "a repetition of a repetition: put ( ) around the inner one"},
		{"a{2}{3}", 4, -EINVAL,
		 "a repetition of a repetition: put ( ) around the inner one"},
		{"a{x}", 1, -EINVAL, "{ begins {m}, {m,} or {m,n}; for the character write \\{"},
		{"a{1", 1, -EINVAL, "{ begins {m}, {m,} or {m,n}; for the character write \\{"},
		{"a{3,2}", 1, -EINVAL, "the most is less than the least"},
		{"a{256}", 1, -E2BIG, "255 repetitions at most"},
		{"a{99999999999}", 1, -E2BIG, "255 repetitions at most"},
		{"(a{200}){200}", 0, -E2BIG, "the pattern is too large"},
		{"((a*){255}){255}", 0, -E2BIG, "the pattern is too large"},
		{"a\\", 1, -EINVAL, "nothing follows the \\"},
		{"a\\d", 1, -EINVAL,
		 "a \\ takes the meaning from a special character, and gives none"},
		{"(((((((((())))))))))", 9, -E2BIG, "more than 9 groups"},
	};
	char text[600];
	struct rs_ere *e;
	const char *why;
	size_t at;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int err = rs_ere_compile(bad[i].pattern, strlen(bad[i].pattern), &e, &at, &why);

		ok(err == bad[i].err && at == bad[i].at && !strcmp(why, bad[i].why),
		   "%s: refused (%d at %zu, %s)", bad[i].pattern, err, at, why);
	}
	memset(text, 'a', sizeof(text));
	ok(rs_ere_compile(text, RS_ERE_PATTERN + 1, &e, &at, &why) == -E2BIG, "a long pattern");
	text[512] = '\0';
	is_str(match(text, text), "the pattern is too large",
	       "a pattern of more codes than there are");
	text[500] = '\0';
	is_str(match(text, text), text, "one that just fits");
}

static void limits(void)
{
	static char text[RS_ERE_TEXT + 2];
	struct timespec a, b;
	double ms, best = 1e9;

	memset(text, 'a', sizeof(text) - 1);
	is_str(match("a*", text), "no", "a text that is too long matches nothing");
	text[RS_ERE_TEXT] = '\0';
	ok(strcmp(match("(a*)*", text), "no") != 0, "one of just that length does");
	/* The best of some: a machine may stand still. */
	for (unsigned i = 0; i < 5; i++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		is_str(match("(a*)*(a*)*(a*)*(a|aa|aaa)*b", text), "no", "many ways to fail");
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
	}
	ok(best < 1000, "take no exponential time (%.1f ms)", best);
}

static uint64_t seed = 12345;

static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

/* A pattern that both accept; 0 and 1 count the groups. */
static void grow(char *out, unsigned depth, unsigned *groups)
{
	unsigned pieces = draw(4);

	for (unsigned i = 0; i < pieces || !i; i++) {
		unsigned kind = draw(depth ? 8 : 6);

		if (kind == 6 && *groups < 4) {
			++*groups;
			strcat(out, "(");
			grow(out, depth - 1, groups);
			strcat(out, ")");
		} else if (kind == 5) {
			strcat(out, draw(2) ? "[ab]" : "[^b]");
		} else if (kind == 4) {
			strcat(out, ".");
		} else {
			strcat(out, draw(2) ? "a" : "b");
		}
		switch (draw(9)) {
		case 0:
			strcat(out, "*");
			break;
		case 1:
			strcat(out, "+");
			break;
		case 2:
			strcat(out, "?");
			break;
		case 3:
			strcat(out, draw(2) ? "{2}" : "{1,3}");
			break;
		default:
			break;
		}
		if (!draw(6))
			strcat(out, "|");
	}
	if (out[strlen(out) - 1] == '|')
		strcat(out, "c");
}

/* regexec's answer for the whole text. */
static int libc_says(const char *pattern, const char *text, int *ret)
{
	char whole[1024];
	regex_t re;

	snprintf(whole, sizeof(whole), "^(%s)$", pattern);
	if (regcomp(&re, whole, REG_EXTENDED | REG_NOSUB))
		return -1;
	*ret = !regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return 0;
}

static void against_libc(void)
{
	unsigned compared = 0, matched = 0, wrong = 0;

	for (unsigned i = 0; i < 3000; i++) {
		char pattern[700] = "";
		unsigned groups = 0;

		grow(pattern, 3, &groups);
		if (strlen(pattern) > 100)
			continue;
		for (unsigned k = 0; k < 6; k++) {
			char text[12] = "";
			int want;

			for (unsigned n = draw(9); n; n--)
				strcat(text, draw(2) ? "a" : draw(5) ? "b" : "c");
			if (libc_says(pattern, text, &want))
				continue;
			compared++;
			matched += (unsigned)want;
			if ((strcmp(match(pattern, text), "no") != 0) == want)
				continue;
			if (!wrong++)
				tap_diag("pattern %s text \"%s\": libc says %d, we %s", pattern,
					 text, want, match(pattern, text));
		}
	}
	ok(!wrong && compared > 10000 && matched > 1000,
	   "%u random patterns and texts: as libc says (%u match)", compared, matched);
}

int main(void)
{
	examples();
	refused();
	limits();
	against_libc();
	return tap_done();
}
