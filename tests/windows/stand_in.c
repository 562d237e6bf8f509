/* Program in place of rg.exe. The variable STAND_IN sets its behaviour:

   silent       write a match and wait
   endless      write matches forever
   mute         write nothing and wait
   panic        with more than one thread: write rg's panic for a thread that cannot be started, and wait;
                otherwise write a match and exit with 0
   linger       write a whole answer, close stdout and wait
   leave        start `STAND_IN_CHILD` and end at once
   launch       start `STAND_IN_CHILD`, wait for it, and exit with its code, as launchers of package managers do

   Each process creates an empty file in the folder STAND_IN_PROCESSES, whose name is its process id. */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define MATCH                                                                                                         \
    "{\"type\":\"match\",\"data\":{\"path\":{\"text\":\"f\"},\"lines\":{\"text\":\"x\\n\"},\"line_number\":1,"        \
    "\"absolute_offset\":0,\"submatches\":[]}}\n"
#define BEGIN "{\"type\":\"begin\",\"data\":{\"path\":{\"text\":\"f\"}}}\n"
#define STATS                                                                                                         \
    "{\"elapsed\":{\"secs\":0,\"nanos\":1,\"human\":\"0s\"},\"searches\":1,\"searches_with_match\":1,"                \
    "\"bytes_searched\":2,\"bytes_printed\":2,\"matched_lines\":1,\"matches\":1}"
#define END                                                                                                           \
    "{\"type\":\"end\",\"data\":{\"path\":{\"text\":\"f\"},\"binary_offset\":null,\"stats\":" STATS "}}\n"           \
    "{\"type\":\"summary\",\"data\":{\"elapsed_total\":{\"secs\":0,\"nanos\":1,\"human\":\"0s\"},\"stats\":" STATS "}}\n"

static int waits(void) {
    Sleep(600000);
    return 0;
}

static PROCESS_INFORMATION start_child(void) {
    STARTUPINFOA files = {sizeof files};
    PROCESS_INFORMATION child = {0};
    SetEnvironmentVariableA("STAND_IN", getenv("STAND_IN_CHILD"));
    files.dwFlags = STARTF_USESTDHANDLES;
    files.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    files.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    files.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    CreateProcessA(NULL, GetCommandLineA(), NULL, NULL, TRUE, 0, NULL, NULL, &files, &child);
    return child;
}

int main(int argc, char **argv) {
    const char *does = getenv("STAND_IN");
    const char *folder = getenv("STAND_IN_PROCESSES");
    int single = 0;
    _setmode(1, _O_BINARY);
    _setmode(2, _O_BINARY);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--version")) {
            puts("ripgrep 15.2.0\n\nfeatures:+pcre2");
            return 0;
        }
        single |= !strcmp(argv[i], "--threads=1");
    }
    if (folder) {
        char path[MAX_PATH];
        snprintf(path, sizeof path, "%s\\%lu", folder, GetCurrentProcessId());
        CloseHandle(CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL));
    }
    if (!does) return 3;
    if (!strcmp(does, "launch") || !strcmp(does, "leave")) {
        PROCESS_INFORMATION child = start_child();
        DWORD code = 0;
        if (!strcmp(does, "launch")) {
            WaitForSingleObject(child.hProcess, INFINITE);
            GetExitCodeProcess(child.hProcess, &code);
        }
        return (int)code;
    }
    if (!strcmp(does, "mute")) return waits();
    if (!strcmp(does, "panic") && !single) {
        fputs("thread 'main' panicked at /rustc/x/library/std/src/thread/scoped.rs:200:46:\n"
              "failed to spawn thread: Os { code: 8, kind: OutOfMemory, message: \"Not enough memory\" }\n", stderr);
        fflush(stderr);
        return waits();
    }
    fputs(BEGIN MATCH, stdout);
    fflush(stdout);
    if (!strcmp(does, "silent")) return waits();
    if (!strcmp(does, "endless"))
        for (;;) fputs(MATCH, stdout);
    fputs(END, stdout);
    fflush(stdout);
    if (!strcmp(does, "linger")) {
        FreeConsole(); /* Wine's conhost.exe has inherited the pipe */
        fclose(stdout);
        return waits();
    }
    return 0;
}
