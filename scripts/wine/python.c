/* python.exe: runs python311.dll from its own folder, as python.org's python.exe does. */
#include <windows.h>

typedef int (*Main)(int, wchar_t **);

int wmain(int argc, wchar_t **argv) {
    Main run = (Main)GetProcAddress(LoadLibraryW(L"python311.dll"), "Py_Main");
    return run ? run(argc, argv) : 126;
}
