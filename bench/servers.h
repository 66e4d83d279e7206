/* The resource usage of a server's processes PID,..: CPU microseconds of all threads, user memory in bytes, or resident memory
 * in bytes, with the pages of files. Include it after the program's own `die`. */
enum usage { CPU, USER, RESIDENT };

static long of_all(const char *pids, enum usage usage) {
    char list[1024], path[300], line[256];
    long sum = 0, v;
    snprintf(list, sizeof list, "%s", pids);
    for (char *pid = strtok(list, ","); pid; pid = strtok(NULL, ",")) {
        if (usage != CPU) {
            snprintf(path, sizeof path, "/proc/%s/smaps_rollup", pid);
            FILE *f = fopen(path, "r");
            if (!f) die(path);
            while (fgets(line, sizeof line, f)) {
                int is_user = sscanf(line, "Anonymous: %ld kB", &v) == 1 || sscanf(line, "Pss_Shmem: %ld kB", &v) == 1;
                if (usage == USER ? is_user : sscanf(line, "Rss: %ld kB", &v) == 1) sum += v * 1024;
            }
            fclose(f);
            continue;
        }
        snprintf(path, sizeof path, "/proc/%s/task", pid);
        DIR *tasks = opendir(path);
        if (!tasks) die(path);
        for (struct dirent *task; (task = readdir(tasks));) {
            snprintf(path, sizeof path, "/proc/%s/task/%.20s/schedstat", pid, task->d_name);
            FILE *f = task->d_name[0] == '.' ? NULL : fopen(path, "r");
            if (f && fscanf(f, "%ld", &v) == 1) sum += v / 1000;
            if (f) fclose(f);
        }
        closedir(tasks);
    }
    return sum;
}
