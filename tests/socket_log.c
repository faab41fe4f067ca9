/* Loaded before the C library: writes a line for every socket of the internet and every look-up of a host. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void note(const char *what, const char *which) {
    FILE *file = fopen(getenv("SOCKET_LOG"), "a");
    if (file) {
        fprintf(file, "%s %s\n", what, which ? which : "");
        fclose(file);
    }
}

int socket(int domain, int type, int protocol) {
    int (*real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    if (domain == AF_INET || domain == AF_INET6)
        note("socket", domain == AF_INET ? "AF_INET" : "AF_INET6");
    return real(domain, type, protocol);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        dlsym(RTLD_NEXT, "getaddrinfo");
    note("getaddrinfo", node);
    return real(node, service, hints, found);
}
