/* SPDX-License-Identifier: MIT */
/*
 * For kernels that touch two ranges of any alignment: the widest access that suits both.
 *
 * Two addresses with the same rest modulo 2, 4, 8 or 16 can be accessed by elements of that size after
 * their first few bytes. Work is cut so that only the first piece of a range has such a head.
 */
typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

#define WARP 32u

/* Elements that a lane has in flight. */
#define DEPTH(T) (sizeof(T) < 8 ? 16 : 8)

/* f<T>(args): T the widest element whose size divides `apart`, the distance of the two addresses. */
#define BY_WIDTH(apart, f, ...)                                                                    \
	do {                                                                                       \
		if ((apart) % 16 == 0)                                                             \
			f<ulonglong2>(__VA_ARGS__);                                                \
		else if ((apart) % 8 == 0)                                                         \
			f<u64>(__VA_ARGS__);                                                       \
		else if ((apart) % 4 == 0)                                                         \
			f<u32>(__VA_ARGS__);                                                       \
		else if ((apart) % 2 == 0)                                                         \
			f<unsigned short>(__VA_ARGS__);                                            \
		else                                                                               \
			f<u8>(__VA_ARGS__);                                                        \
	} while (0)

/* Bytes before the first element on its boundary, at most n. */
template <typename T> static __device__ __forceinline__ u32 head_of(const u8 *p, u32 n)
{
	u32 head = (0u - (u32)(u64)p) % sizeof(T);

	return head < n ? head : n;
}
