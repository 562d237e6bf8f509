/* python3.dll has no code: it forwards the stable ABI to python311.dll. */
int __stdcall DllMain(void *module, unsigned reason, void *reserved) { return 1; }
