/* bcryptprimitives.dll, which programs in Rust load (rg, pydantic-core) and Wine 8 does not have. */
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
