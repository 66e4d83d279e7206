/* Opens N connections to 127.0.0.1:PORT, sends one GET on each, keeps them open, and prints the growth of anonymous and
 * shared memory of the processes PID,.. per connection. With "answered" each response is read first (idle
 * keep-alive); with "parked" the program does not wait for it (an open long poll).
 *
 *   cc -O2 -o park park.c
 *   ./park PORT N PID[,PID..] PATH answered|parked
 *
 * Kernel memory of the sockets is not counted: it is the same for every server.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 19990 }; /* one address pair has about 28 000 ports, one process here 20 000 descriptors */
static int fds[MOST];

static long kibibytes(const char *pids) {
    char list[1024], path[64], line[256];
    long sum = 0, v;
    snprintf(list, sizeof list, "%s", pids);
    for (char *pid = strtok(list, ","); pid; pid = strtok(NULL, ",")) {
        snprintf(path, sizeof path, "/proc/%s/smaps_rollup", pid);
        FILE *f = fopen(path, "r");
        if (!f) { perror(path); exit(1); }
        while (fgets(line, sizeof line, f))
            if (sscanf(line, "Anonymous: %ld kB", &v) == 1 || sscanf(line, "Pss_Shmem: %ld kB", &v) == 1) sum += v;
        fclose(f);
    }
    return sum;
}

int main(int argc, char **argv) {
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 6 || n < 1 || n > MOST) { fprintf(stderr, "usage: park PORT N PID[,PID..] PATH answered|parked\n"); return 2; }
    int answered = !strcmp(argv[5], "answered");
    char request[1024], reply[65536];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[4]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    long before = kibibytes(argv[3]);
    for (int i = 0; i < n; i++) {
        int fd = fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) { perror("connect"); fprintf(stderr, "stopped at %d\n", i); return 1; }
        if (send(fd, request, len, MSG_NOSIGNAL) != len) { perror("send"); return 1; }
        if (answered && (recv(fd, reply, sizeof reply, 0) < 12 || memcmp(reply + 9, "200", 3))) { fprintf(stderr, "connection %d: no 200\n", i); return 1; }
    }
    usleep(1500000); /* time for the server to free memory while idle */
    for (int i = 0; i < n; i++) {
        ssize_t r = recv(fds[i], reply, sizeof reply, MSG_PEEK | MSG_DONTWAIT);
        if (r >= 0) { fprintf(stderr, "connection %d %s\n", i, r ? "was answered" : "was closed"); return 1; }
    }
    long after = kibibytes(argv[3]);
    printf("%d connections: %ld -> %ld KiB, %ld bytes per connection\n", n, before, after, (after - before) * 1024 / n);
}
