/* bcryptprimitives.dll: programs in Rust (rg, pydantic-core) load it, and Wine 8 lacks it. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count) {
    while (count) {
        ULONG part = count > 65536 ? 65536 : (ULONG)count;
        if (!SystemFunction036(bytes, part)) return FALSE;
        bytes += part;
        count -= part;
    }
    return TRUE;
}
